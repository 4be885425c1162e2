"""Which segments the current snapshot of a topic's table holds, for those who only look.

Manifests are immutable, so each is parsed once: what was read of a topic's newest snapshot is kept, and the next look
reads only the manifests that a commit has added since, and those that a disk has lost or cut off, so that it is told.
Whoever commits needs the manifests' entries (``live_files``); an entry is as large as five segments.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from keptlog.log.segment import Segment
from keptlog.log.words.contradiction import contradiction
from keptlog.table.metadata.metadata_files import may_be_whole
from keptlog.table.metadata.metadata_reading import entries_of, manifests_of
from keptlog.table.metadata.segment_metrics import live_segment

if TYPE_CHECKING:
    from pyiceberg.manifest import ManifestEntry, ManifestFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

Kept = TypeVar("Kept")
_DELETES = 1
"""Iceberg's number for a manifest of delete files."""


@dataclass
class LiveManifests(Generic[Kept]):
    """Reads snapshots; of each file in a topic's newest one it remembers what ``keep`` makes of it.

    That is given the topic, the manifest's entry, and the manifest's path.
    """

    keep: Callable[[str, ManifestEntry, str], Kept]
    _parsed: dict[str, dict[str, tuple[Kept, ...]]] = field(default_factory=dict)
    """Topic to its manifests, by path."""

    def of(self, table: Table, snapshot: Snapshot | None = None) -> Iterable[tuple[Kept, ...]]:
        """What is kept of the files, manifest by manifest; of a snapshot, by default the current one."""
        topic = table.name()[-1]
        looked_at = snapshot or table.current_snapshot()
        known = self._parsed.get(topic, {})

        def kept_of(manifest: ManifestFile) -> tuple[Kept, ...]:
            path = manifest.manifest_path
            if path in known and may_be_whole(path, manifest.manifest_length):
                return known[path]
            return tuple(self.keep(topic, entry, path) for entry in _entries(topic, table, manifest))

        manifests = manifests_of(topic, looked_at, table.io) if looked_at else ()
        parsed = {manifest.manifest_path: kept_of(manifest) for manifest in manifests}
        if snapshot is None:
            self._parsed[topic] = parsed
        return parsed.values()

    def topics(self) -> set[str]:
        """Those of which something is remembered."""
        return set(self._parsed)

    def forget(self, topic: str) -> None:
        """Remember nothing of a topic."""
        self._parsed.pop(topic, None)

    def paths_of(self, topic: str) -> tuple[str, ...]:
        """The manifests of the newest snapshot of a topic that was read."""
        return tuple(self._parsed.get(topic, ()))


class LiveSegments:
    """Reads current snapshots, and remembers their segments."""

    def __init__(self) -> None:
        self._manifests = LiveManifests(lambda topic, entry, _: live_segment(topic, entry.data_file))

    def of(self, table: Table) -> dict[int, tuple[Segment, ...]]:
        """Segments by partition, in offset order, of the current snapshot.

        Raises:
            LogCorrupt: a file is not keptlog's, rows were deleted by delete files, or a manifest is damaged or gone.
        """
        by_partition: dict[int, list[Segment]] = defaultdict(list)
        for files in self._manifests.of(table):
            for partition, segment in files:
                by_partition[partition].append(segment)
        return {
            partition: tuple(sorted(segments, key=lambda segment: segment.base_offset))
            for partition, segments in by_partition.items()
        }

    def topics(self) -> set[str]:
        """Those of which something is remembered."""
        return self._manifests.topics()

    def forget(self, topic: str) -> None:
        """Remember nothing of a topic."""
        self._manifests.forget(topic)

    def manifests_of(self, topic: str) -> tuple[str, ...]:
        """Paths of the manifests that the segments of a topic were read from."""
        return self._manifests.paths_of(topic)


def _entries(topic: str, table: Table, manifest: ManifestFile) -> Iterable[ManifestEntry]:
    if manifest.content != _DELETES:
        return entries_of(topic, manifest, table.io)
    if manifest.has_added_files() or manifest.has_existing_files():
        raise contradiction(
            f"topic {topic}: manifest {manifest.manifest_path} holds delete files, whose rows would come back in a "
            "clean"
        )
    return ()
