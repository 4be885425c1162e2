"""A purge of one topic (``purge``): what nobody may read any longer leaves the table and the storage.

    whether there is anything to do     ``quiet``; remembered: ``purge_memory``
    whether it may be                   ``clock_guard`` (the clock)
    what leaves the table first         ``watermark_expiry``; what outlives the snapshots: ``expired``
    what crashes have left              ``sweep``
    what is told of it                  ``purge_receipt``

How files go is told by the folder below, removal.
"""
