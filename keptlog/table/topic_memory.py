"""What a store remembers of topics for as long as its process lives, and what makes it forget those that are gone.

A topic that is deleted is known to whoever deletes it. Of those that others have deleted, the next look at all topics
tells. Who forgets too much reads a few files again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from keptlog.log.segment import Log
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.lineage import require_own
from keptlog.table.metadata.live_files import LiveFiles
from keptlog.table.metadata.logs import Locations, config_of
from keptlog.table.reading.lost import LostFiles, LostMemory
from keptlog.table.table_look import TableLook

if TYPE_CHECKING:
    from pyiceberg.table import Table


@dataclass(frozen=True, slots=True)
class TopicMemory:
    """Manifests that were read, of each topic's newest snapshot and of what its tags and branches keep."""

    live_files: LiveFiles = field(default_factory=LiveFiles)
    """For those who commit."""
    table_look: TableLook = field(default_factory=TableLook)
    """For those who look."""
    lost_memory: LostMemory = field(default_factory=LostMemory)
    """For those who miss files."""

    def topics(self) -> set[str]:
        """Those of which something is remembered."""
        return self.live_files.topics() | self.table_look.topics()

    def forget(self, topic: str) -> None:
        """Remember nothing of a topic."""
        self.live_files.forget(topic)
        self.table_look.forget(topic)

    def lost_files(self, table: Table, files: TableFiles, broker_settings: Mapping[str, str]) -> LostFiles:
        """What is live in a topic's table as it is now, to be asked for files that were missed before.

        Raises:
            LogCorrupt: what is stored contradicts itself, or its snapshot is not the one that its state belongs to.
        """

        def logs() -> list[Log]:
            require_own(table)
            return self.live_files.logs(table, config_of(table.name()[-1], table.properties, broker_settings))

        return self.lost_memory.at(table.metadata_location, files, logs)

    def forgetting_gone(self, there: Locations) -> Locations:
        """The same, and nothing is remembered of other topics, unless the look had no time for all."""
        if not there.to_be_asked:
            for topic in self.topics() - there.keys():
                self.forget(topic)
        return there
