"""Whether a registered reader may go on from his position, in words; ``readers`` asks, and tells how to start over."""

from __future__ import annotations

from keptlog.table.metadata.state import LogState
from keptlog.table.reading.readers import ReaderPosition, Registration


def truncated_below(where: str, position: ReaderPosition, state: LogState) -> str | None:
    """From where on it is another log than a reader has read up to his position; null if it is the same up to there."""
    end_offset = state.truncations.end_below(position.offset, since=position.truncations)
    told = f"it has read {where} up to offset {position.offset}, which was truncated to {end_offset} since"
    return None if end_offset is None else told


def missed_before(
    where: str, registration: Registration, partition: int, position: ReaderPosition, state: LogState
) -> str | None:
    """What a reader at a position has missed of one log; null if nothing."""
    gone, offset = registration.missed_from(partition, position.offset), position.offset
    if gone:
        return gone.told(where)
    has_records = position.has_begun or offset > 0
    if has_records and offset < state.log_start_offset:
        return f"it is at offset {offset} of {where}, whose records below {state.log_start_offset} were removed"
    if offset > state.log_end_offset:
        return f"it is at offset {offset} of {where}, which ends at {state.log_end_offset} now"
    return None
