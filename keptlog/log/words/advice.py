"""What is advised in many places, in the same words."""

from __future__ import annotations

CREATE_TOPIC = "keptlog topic create TOPIC --config cleanup.policy=compact"
"""Where there is no topic at all."""

WHOLE_BACKUP = "put back a whole backup, catalog and files, by which every topic goes back to its time"
"""Where one topic needs an older state: a catalog is that of all topics, and the others lose what came since."""


def if_deleted(topic: str) -> str:
    """Where a catalog names a topic of which nothing is there: it may have been deleted since that was backed up."""
    return (
        f"if it was deleted, PyIceberg's catalog.drop_table({('keptlog', topic)!r}) takes it out of the catalog: "
        f"keptlog receipt list --topic={topic} tells whether it was"
    )
