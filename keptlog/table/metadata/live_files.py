"""Which files a snapshot of a topic's table holds, read from its manifests alone, for those who commit.

They need the manifests' entries, and look at a few topics. Whoever watches looks at all of them for as long as his
process lives, and needs the segments alone (``live_segments``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from keptlog.log.config import TopicConfig
from keptlog.log.segment import Log, Segment
from keptlog.table.metadata.file_metrics import LiveFile, live_file
from keptlog.table.metadata.lineage import blaming
from keptlog.table.metadata.live_segments import LiveManifests
from keptlog.table.metadata.logs import logs_from


class LiveFiles:
    """Reads snapshots, and remembers the manifests of each topic's newest one."""

    def __init__(self) -> None:
        self._manifests = LiveManifests(live_file)

    def of(self, table: Table, snapshot: Snapshot | None = None) -> dict[int, list[LiveFile]]:
        """Files by partition, in offset order, of a snapshot (default: the current one).

        Raises:
            LogCorrupt: a file is not keptlog's, rows were deleted by delete files, or a manifest is damaged or gone.
        """
        by_partition: dict[int, list[LiveFile]] = defaultdict(list)
        for files in self._manifests.of(table, snapshot):
            for file in files:
                by_partition[file.partition].append(file)
        for files_of_partition in by_partition.values():
            files_of_partition.sort(key=lambda file: file.segment.base_offset)
        return dict(by_partition)

    def topics(self) -> set[str]:
        """Those of which something is remembered."""
        return self._manifests.topics()

    def forget(self, topic: str) -> None:
        """Remember nothing of a topic."""
        self._manifests.forget(topic)

    def logs(self, table: Table, config: TopicConfig, snapshot: Snapshot | None = None) -> list[Log]:
        """The logs of a topic, one for each partition, in a snapshot (default: the current one).

        Raises:
            LogCorrupt: files overlap, lie beyond the log end offset or in a partition that does not exist.
        """
        with blaming(table):
            segments = segments_of(self.of(table, snapshot))
            return logs_from(table.name()[-1], table.properties, segments, config, str(table.metadata.table_uuid))


def logs_of(topic: str, properties: dict[str, str], files: dict[int, list[LiveFile]], config: TopicConfig) -> list[Log]:
    """Put files and state together.

    Raises:
        LogCorrupt: they contradict each other.
    """
    return logs_from(topic, properties, segments_of(files), config)


def live_at(live: Mapping[int, Sequence[LiveFile]], paths: Container[str]) -> list[LiveFile]:
    """The files that lie at these paths."""
    return [file for files in live.values() for file in files if file.segment.path in paths]


def segments_of(files: Mapping[int, Sequence[LiveFile]]) -> dict[int, tuple[Segment, ...]]:
    """The segments of files, by partition."""
    return {partition: tuple(file.segment for file in of_partition) for partition, of_partition in files.items()}
