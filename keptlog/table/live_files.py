"""Which files a snapshot of a topic's table holds, read from its manifests alone.

Manifests are immutable, so each is parsed once: what was read of a topic's newest snapshot is kept, and the next look
reads only the manifests that a commit has added since.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from pyiceberg.manifest import ManifestContent, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from keptlog.errors import LogCorrupt
from keptlog.log.config import TopicConfig
from keptlog.log.segment import Log, Segment
from keptlog.table.file_metrics import LiveFile, live_file
from keptlog.table.logs import logs_from
from keptlog.table.metadata_reading import entries_of, manifests_of

_Parsed = dict[str, tuple[LiveFile, ...]]


class LiveFiles:
    """Reads snapshots, and remembers the manifests of each topic's newest one."""

    def __init__(self) -> None:
        self._parsed: dict[str, _Parsed] = {}

    def of(self, table: Table, snapshot: Snapshot | None = None) -> dict[int, list[LiveFile]]:
        """Files by partition, in offset order, of a snapshot (default: the current one).

        Raises:
            LogCorrupt: a file is not keptlog's, rows were deleted by delete files, or a manifest is damaged or gone.
        """
        topic = table.name()[-1]
        looked_at = snapshot or table.current_snapshot()
        known = self._parsed.get(topic, {})
        parsed: _Parsed = {}
        by_partition: dict[int, list[LiveFile]] = defaultdict(list)
        for manifest in manifests_of(topic, looked_at, table.io) if looked_at else ():
            files = known.get(manifest.manifest_path) or _parse(topic, table, manifest)
            parsed[manifest.manifest_path] = files
            for file in files:
                by_partition[file.partition].append(file)
        if snapshot is None:
            self._parsed[topic] = parsed
        for files_of_partition in by_partition.values():
            files_of_partition.sort(key=lambda file: file.segment.base_offset)
        return dict(by_partition)

    def logs(self, table: Table, config: TopicConfig) -> list[Log]:
        """The logs of a topic, one for each partition, in the current snapshot.

        Raises:
            LogCorrupt: files overlap, lie beyond the log end offset or in a partition that does not exist.
        """
        logs = logs_of(table.name()[-1], table.properties, self.of(table), config)
        return [replace(log, topic_id=str(table.metadata.table_uuid)) for log in logs]


def logs_of(topic: str, properties: dict[str, str], files: dict[int, list[LiveFile]], config: TopicConfig) -> list[Log]:
    """Put files and state together.

    Raises:
        LogCorrupt: they contradict each other.
    """
    return logs_from(topic, properties, segments_of(files), config)


def segments_of(files: dict[int, list[LiveFile]]) -> dict[int, tuple[Segment, ...]]:
    """The segments of files, by partition."""
    return {partition: tuple(file.segment for file in of_partition) for partition, of_partition in files.items()}


def _parse(topic: str, table: Table, manifest: ManifestFile) -> tuple[LiveFile, ...]:
    if manifest.content == ManifestContent.DELETES:
        if manifest.has_added_files() or manifest.has_existing_files():
            raise LogCorrupt(
                f"topic {topic}: manifest {manifest.manifest_path} holds delete files of another program, whose rows "
                f"would come back in a clean; keptlog repair {topic} takes them out again"
            )
        return ()
    path = manifest.manifest_path
    return tuple(live_file(topic, entry, path) for entry in entries_of(topic, manifest, table.io))
