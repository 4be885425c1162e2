"""What those who only look take from a topic's table: segments, state, and what it tells of bytes that are not live."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keptlog.table.metadata.lineage import require_own
from keptlog.table.metadata.live_segments import LiveSegments
from keptlog.table.metadata.logs import StoredTopic
from keptlog.table.metadata.metadata_files import metadata_files
from keptlog.table.removal.superseded import SupersededFiles

if TYPE_CHECKING:
    from pyiceberg.table import Table


@dataclass(frozen=True)
class TableLook:
    """Looks at tables, and remembers the manifests that it has read."""

    live_segments: LiveSegments = field(default_factory=LiveSegments)
    superseded_files: SupersededFiles = field(default_factory=SupersededFiles)

    def topics(self) -> set[str]:
        """Those of which something is remembered."""
        return self.live_segments.topics() | self.superseded_files.topics()

    def forget(self, topic: str) -> None:
        """Remember nothing of a topic."""
        self.live_segments.forget(topic)
        self.superseded_files.forget(topic)

    def at(self, table: Table) -> StoredTopic:
        """What a table says as it is now.

        Raises:
            LogCorrupt: it can't be read, or its snapshot is not the one that its state belongs to.
        """
        require_own(table)
        topic, snapshot = table.name()[-1], table.current_snapshot()
        segments = self.live_segments.of(table)
        held = self.superseded_files.of(table)
        lists = [snapshot.manifest_list] if snapshot else []
        said_by = metadata_files([table.metadata_location, *lists, *self.live_segments.manifests_of(topic)])
        topic_id = str(table.metadata.table_uuid)
        return StoredTopic(topic, table.metadata_location, table.properties, segments, held, said_by, topic_id)
