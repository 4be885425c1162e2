"""Until when tags and branches keep what they show: whoever made one may have given it a retention of its own.

    CREATE TAG audit                   stays until somebody drops it
    CREATE TAG audit RETAIN 7 DAYS     ends when its snapshot is more than seven days old; the next purge drops it

That is ``max-ref-age-ms``, by the rule that Iceberg has for whoever expires snapshots: it counts from when the snapshot
was made, not the tag. ``main`` never ends. What a table says for all refs together (``history.expire.*``) is no promise
of whoever made one of them, and ends none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from keptlog.log.words.iso_time import iso_time

if TYPE_CHECKING:
    from pyiceberg.table import Table

_MAIN_BRANCH = "main"


@dataclass(frozen=True, slots=True)
class EndedRef:
    """A tag or a branch that a purge drops; the text says all of it."""

    kind: str
    """tag or branch, as Iceberg says it."""
    name: str
    kept_until_ms: int

    def __str__(self) -> str:
        return f"{self.kind} {self.name}, whose retention ended {iso_time(self.kept_until_ms)}"


def kept_until_ms(table: Table) -> dict[str, int]:
    """Tag or branch to the last moment at which it keeps anything; none if it has no retention."""
    made_ms = {each.snapshot_id: each.timestamp_ms for each in table.metadata.snapshots}
    return {
        name: made_ms[reference.snapshot_id] + reference.max_ref_age_ms
        for name, reference in table.metadata.refs.items()
        if name != _MAIN_BRANCH and reference.max_ref_age_ms is not None and reference.snapshot_id in made_ms
    }


def ended_refs(table: Table, now_ms: int) -> tuple[EndedRef, ...]:
    """Tags and branches whose retention is over, by name."""
    refs, kept_ms = table.metadata.refs, sorted(kept_until_ms(table).items())
    return tuple(
        EndedRef(refs[name].snapshot_ref_type.value, name, until_ms) for name, until_ms in kept_ms if until_ms < now_ms
    )


def kept_snapshots(table: Table, now_ms: int) -> set[int]:
    """The snapshots that ``main``, or a tag or branch that has not ended, points to."""
    ended = {each.name for each in ended_refs(table, now_ms)}
    return {reference.snapshot_id for name, reference in table.metadata.refs.items() if name not in ended}
