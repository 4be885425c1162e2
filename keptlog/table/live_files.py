"""Which files a snapshot of a topic's table holds, read from its manifests alone.

Manifests are immutable, so each is parsed once: what was read of a topic's newest snapshot is kept, and the next look
reads only the manifests that a commit has added since.

Whoever commits needs the manifests' entries, and looks at a few topics (``LiveFiles``). Whoever watches looks at all of
them for as long as his process lives, and needs the segments alone (``LiveSegments``): an entry is as large as five.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from pyiceberg.manifest import ManifestContent, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from keptlog.errors import LogCorrupt
from keptlog.log.config import TopicConfig
from keptlog.log.segment import Log, Segment
from keptlog.table.file_metrics import LiveFile, live_file
from keptlog.table.logs import logs_from
from keptlog.table.metadata_reading import entries_of, manifests_of

Kept = TypeVar("Kept")


@dataclass
class _Manifests(Generic[Kept]):
    """Reads snapshots; of each file in a topic's newest one it remembers what ``keep`` makes of it."""

    keep: Callable[[LiveFile], Kept]
    _parsed: dict[str, dict[str, tuple[Kept, ...]]] = field(default_factory=dict)
    """Topic to its manifests, by path."""

    def of(self, table: Table, snapshot: Snapshot | None) -> Iterable[tuple[Kept, ...]]:
        """What is kept of the files, manifest by manifest."""
        topic = table.name()[-1]
        looked_at = snapshot or table.current_snapshot()
        known = self._parsed.get(topic, {})
        parsed = {
            manifest.manifest_path: known.get(manifest.manifest_path)
            or tuple(self.keep(file) for file in _parse(topic, table, manifest))
            for manifest in (manifests_of(topic, looked_at, table.io) if looked_at else ())
        }
        if snapshot is None:
            self._parsed[topic] = parsed
        return parsed.values()


class LiveFiles:
    """Reads snapshots, and remembers the manifests of each topic's newest one."""

    def __init__(self) -> None:
        self._manifests = _Manifests(lambda file: file)

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

    def logs(self, table: Table, config: TopicConfig) -> list[Log]:
        """The logs of a topic, one for each partition, in the current snapshot.

        Raises:
            LogCorrupt: files overlap, lie beyond the log end offset or in a partition that does not exist.
        """
        logs = logs_of(table.name()[-1], table.properties, self.of(table), config)
        return [replace(log, topic_id=str(table.metadata.table_uuid)) for log in logs]


class LiveSegments:
    """The same for those who only look: they remember segments."""

    def __init__(self) -> None:
        self._manifests = _Manifests(lambda file: (file.partition, file.segment))

    def of(self, table: Table) -> dict[int, tuple[Segment, ...]]:
        """Segments by partition, in offset order, of the current snapshot.

        Raises:
            LogCorrupt: as ``LiveFiles.of`` does.
        """
        by_partition: dict[int, list[Segment]] = defaultdict(list)
        for files in self._manifests.of(table, None):
            for partition, segment in files:
                by_partition[partition].append(segment)
        return {
            partition: tuple(sorted(segments, key=lambda segment: segment.base_offset))
            for partition, segments in by_partition.items()
        }


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
