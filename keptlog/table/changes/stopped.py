"""Notes beside logs why their ingest stopped (``keptlog.log.stopped_ingest``), in their topic's properties.

No segment moves, so no snapshot is made. A note says at which position it was found. So it may land after an ingest
that has moved the log, and says nothing then. An ingest that stops again for the same
reason notes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyiceberg.table import Table
from pyiceberg.table.update import SetPropertiesUpdate

from keptlog.errors import LogCorrupt
from keptlog.log.stopped_ingest import StoppedIngest
from keptlog.table.commits.commit import Committer, Land
from keptlog.table.metadata.change import Change
from keptlog.table.metadata.partitions import partition_count
from keptlog.table.metadata.state import ingest_stopped, read_source, read_stopped_ingest
from keptlog.table.metadata.stored_json import to_json
from keptlog.table.metadata.without_snapshot import commit_without_snapshot

_LONGEST_REASON = 1000


def note_stopped(committer: Committer, topic: str, topic_id: str | None, stops: Mapping[int, StoppedIngest]) -> None:
    """Note them by partition; not of a log that has moved since, nor again what is noted already.

    Raises:
        LogCorrupt: the topic can't be understood.
        StalePlan, StorageUnavailable: the notes could not be set.
    """

    def prepare(table: Table) -> Land | None:
        stored, partitions = read_source(topic, table.properties), partition_count(topic, table.properties)
        updates: dict[str, str] = {}
        for number, stop in stops.items():
            if number >= partitions or not stop.counts(number, stored):
                continue
            reason = stop.reason[:_LONGEST_REASON]
            before = _noted(topic, number, table)
            if before is None or before.reason != reason or not before.counts(number, stored):
                updates[ingest_stopped(number)] = to_json(
                    StoppedIngest(stop.position, stop.truncations, stop.source, reason, stop.since_ms)
                )
        if not updates:
            return None
        return lambda: commit_without_snapshot(committer.catalog, table, SetPropertiesUpdate(updates=updates))

    committer.commit(Change(topic, topic_id), prepare)


def _noted(topic: str, partition: int, table: Table) -> StoppedIngest | None:
    """What is noted now; what can't be read is written anew."""
    try:
        return read_stopped_ingest(topic, partition, table.properties)
    except LogCorrupt:
        return None
