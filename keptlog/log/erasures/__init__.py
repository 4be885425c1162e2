"""Erasures: every value of some keys is to be gone from the storage by a deadline.

what is asked for         ``erasure``
by when                   ``erasure_deadline`` (what stands in the way, and until when), ``erasure_schedule`` (from when
on a pass is asked for)
where keys may be         ``key_logs``
what is not done yet      ``open_erasures``; when it can be further: ``next_time``
where they may be after   ``remembered``: what files still know of a deleted key, and until when
what is next              ``prospect``: of a topic's erasures, as its logs are by now
who waits no more         ``dropped_here``: a later request has dropped what it waits for
"""
