"""Which failures of an ingest stop a topic-partition until somebody chooses, and where that is remembered.

An outage, a lost race and a wrong password are told by whoever meets them, and pass without any choice about records.
What was read and must not land does not pass. It is noted beside the log, for those who read nothing
(``keptlog.ingest.lag``).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from keptlog.errors import IngestStopped, InvalidRecord, KeptlogError, LogCorrupt
from keptlog.log.stopped_ingest import StoppedIngest
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.changes.stopped import note_stopped
from keptlog.table.waiting.reaching import why_not_landed

if TYPE_CHECKING:
    from keptlog.ingest.result import Intake
    from keptlog.log.source import IngestPlan
    from keptlog.table.commits.topics import Topic
    from keptlog.table.store import LogStore

_logger = logging.getLogger(__name__)
_STOPS = (IngestStopped, InvalidRecord, LogCorrupt)


def remember_stops(store: LogStore, plan: IngestPlan, topic: Topic, stops: Mapping[int, StoppedIngest]) -> None:
    """Note them; what can't be noted is a line of the log, and stops nobody who ingests."""
    if not stops:
        return
    try:
        note_stopped(store.committer, plan.topic, topic.id, stops)
    except Exception as error:  # noqa: BLE001  # whatever is wrong with a topic, it is nothing to the others
        names = ", ".join(str(TopicPartition(plan.topic, number)) for number in sorted(stops))
        why = why_not_landed(plan.topic, error)
        _logger.warning("that the ingest of %s is stopped is not remembered for keptlog notify: %s", names, why)


def stops_of(
    plan: IngestPlan, broken: Mapping[str, KeptlogError], landed: Sequence[Intake], now_ms: int
) -> dict[int, StoppedIngest]:
    """By partition, what was read and stops there, at the position that ``landed`` has reached.

    Who ingests a directory asks for it, and is told: nobody looks at those in between.
    """
    if not plan.source.bootstrap:
        return {}
    reached = {each.range.partition: each.range.end_offset for each in landed}
    stops: dict[int, StoppedIngest] = {}
    for each in plan.ranges:
        error = broken.get(str(TopicPartition(plan.topic, each.partition)))
        if isinstance(error, _STOPS):
            position = reached.get(each.partition, each.position)
            stops[each.partition] = StoppedIngest(position, each.truncations, plan.source, str(error), now_ms)
    return stops
