"""Until when tags and branches keep what they show: whoever made one may have given it a retention of its own.

    CREATE TAG audit                   stays until somebody drops it
    CREATE TAG audit RETAIN 7 DAYS     ends when its snapshot is more than seven days old; the next purge drops it

That is ``max-ref-age-ms``, by the rule that Iceberg has for whoever expires snapshots: it counts from when the snapshot
was made, not the tag. ``main`` never ends. What a table says for all refs together (``history.expire.*``) is no promise
of whoever made one of them, and ends none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.table import Table

_MAIN_BRANCH = "main"


def kept_until_ms(table: Table) -> dict[str, int]:
    """Tag or branch to the last moment at which it keeps anything; none if it has no retention."""
    made_ms = {each.snapshot_id: each.timestamp_ms for each in table.metadata.snapshots}
    return {
        name: made_ms[reference.snapshot_id] + reference.max_ref_age_ms
        for name, reference in table.metadata.refs.items()
        if name != _MAIN_BRANCH and reference.max_ref_age_ms is not None and reference.snapshot_id in made_ms
    }


def ended_refs(table: Table, now_ms: int) -> tuple[str, ...]:
    """Tags and branches whose retention is over, sorted."""
    return tuple(sorted(name for name, until_ms in kept_until_ms(table).items() if until_ms < now_ms))


def kept_snapshots(table: Table, now_ms: int) -> set[int]:
    """The snapshots that ``main``, or a tag or branch that has not ended, points to."""
    ended = ended_refs(table, now_ms)
    return {reference.snapshot_id for name, reference in table.metadata.refs.items() if name not in ended}
