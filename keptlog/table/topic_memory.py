"""What a store remembers of topics for as long as its process lives, and what makes it forget those that are gone.

A topic that is deleted is known to whoever deletes it. Of those that others have deleted, the next look at all topics
tells. Who forgets too much reads a few files again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from keptlog.table.metadata.live_files import LiveFiles
from keptlog.table.metadata.logs import Locations
from keptlog.table.table_look import TableLook


@dataclass(frozen=True, slots=True)
class TopicMemory:
    """Manifests that were read, of each topic's newest snapshot and of what its tags and branches keep."""

    live_files: LiveFiles = field(default_factory=LiveFiles)
    """For those who commit."""
    table_look: TableLook = field(default_factory=TableLook)
    """For those who look."""

    def topics(self) -> set[str]:
        """Those of which something is remembered."""
        return self.live_files.topics() | self.table_look.topics()

    def forget(self, topic: str) -> None:
        """Remember nothing of a topic."""
        self.live_files.forget(topic)
        self.table_look.forget(topic)

    def forgetting_gone(self, there: Locations) -> Locations:
        """The same, and nothing is remembered of other topics, unless the look had no time for all."""
        if not there.to_be_asked:
            for topic in self.topics() - there.keys():
                self.forget(topic)
        return there
