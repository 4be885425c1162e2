"""What is to be done at a broker about what can't be read, or kept, from there."""

from __future__ import annotations


def delete_there(what: str) -> str:
    """How to get rid of the records before a place, and what that takes.

    A broker refuses to delete records of a topic whose policy lacks ``delete``. With it the topic's retention counts,
    which is a week unless somebody has set it: it would take the latest values of keys.
    """
    return (
        f"delete all records {what} there (kafka-delete-records), and go on without those (--skip-lost). It costs the "
        "latest values of other keys there too, for everybody. A topic with cleanup.policy=compact refuses it: set "
        "cleanup.policy=compact,delete, retention.ms=-1 and retention.bytes=-1 in one step, and set them back "
        "afterwards"
    )
