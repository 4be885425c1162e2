"""What comes from outside, by hand or in a file, and may be anything.

of a type                 ``given`` (what callers give), ``plain_number``, ``properties`` (Kafka's files)
of a time                 ``given_time``, ``past`` (a clock that may be ahead)
of a name                 ``unknown_topic`` (what may have been meant); of a key: ``partitioner``
"""
