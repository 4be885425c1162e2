"""Whether an adoption may have left gaps anywhere in a log, so that a missing segment need not be a lost one (ADR 27).

An adoption leaves where cleans had reached, in ``cleaning_to``, and that is all that an older keptlog noted. So whoever
else sets that, a clean in legs or a repair that undoes what others did, says beside it that nothing was given up. The
first clean behind whose end no segment is missing removes both (``swap``); an older keptlog's only emptied the one.
"""

from __future__ import annotations

from collections.abc import Mapping

from keptlog.log.sections import GIVEN_UP
from keptlog.table.metadata.state import UNDONE, LogState, cleaning_to, first_dirty_offset


def nothing_given_up(partition: int) -> str:
    """Name of the property that says that ``cleaning_to`` comes from no adoption; absent or empty if it may."""
    return f"log.p{partition}.nothing-given-up"


def may_have_gaps(partition: int, properties: Mapping[str, str]) -> bool:
    """Whether a log was adopted, or may have been by an older keptlog, and no clean has passed what that gave up."""
    if cleaning_to(partition) in properties:
        return not properties.get(nothing_given_up(partition))
    # One that adopted a log whose checkpoint lay behind its end noted the adoption alone.
    return UNDONE in properties and properties.get(first_dirty_offset(partition)) == str(GIVEN_UP)


def without_adoption(partition: int, properties: Mapping[str, str]) -> dict[str, str]:
    """What to set beside ``cleaning_to`` if no adoption sets it: it begins no doubt, and ends none."""
    return {} if may_have_gaps(partition, properties) else {nothing_given_up(partition): "true"}


def without_checkpoint(
    topic: str, partition: int, properties: Mapping[str, str], *, is_adoption: bool
) -> dict[str, str]:
    """What a repair sets that gives up a log's checkpoint.

    How far cleans have reached stays known, 0 too, or that nobody knows: below, it is not as it was appended.
    """
    state = {first_dirty_offset(partition): str(GIVEN_UP)}
    stored = LogState.read(topic, partition, properties)
    reached = stored.checkpoint or 0
    if stored.cleaning_to is None or stored.cleaning_to < reached <= stored.log_end_offset:
        state[cleaning_to(partition)] = str(reached) if reached <= stored.log_end_offset else ""
    if not is_adoption:
        return state | without_adoption(partition, properties)
    return state | ({nothing_given_up(partition): ""} if properties.get(nothing_given_up(partition)) else {})
