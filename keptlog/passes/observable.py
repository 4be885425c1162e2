"""What an observer looks at, as little of it as it asks for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from keptlog.table.io.files import TableFiles
    from keptlog.table.metadata.logs import Locations, ObservedTopic
    from keptlog.table.purging.clock_guard import ClockGuard
    from keptlog.table.waiting.side_by_side import Patience


class HasProperties(Protocol):
    """As much of a table as is asked for of a topic that can't be read."""

    @property
    def properties(self) -> Mapping[str, str]:
        """Those of the table."""


class Observable(Protocol):
    """Topics that can be looked at: a ``LogStore``, or a home that is not opened yet (``UnopenedStore``)."""

    broker_settings: Mapping[str, str]

    @property
    def clock_guard(self) -> ClockGuard:
        """What tells whether a purge would believe the clock."""

    @property
    def files(self) -> TableFiles:
        """Where the tables lie."""

    def topics(self) -> Collection[str]:
        """Names of all topics, sorted."""

    def being_deleted(self) -> Collection[str]:
        """Topics whose deletion was begun and is not finished."""

    def metadata_locations(self, patience: Patience | None = None) -> Locations:
        """Topic to the location of its current metadata, which every commit moves."""

    def observe(self, topic: str, location: str | None = None) -> ObservedTopic:
        """What is to be seen of a topic at a metadata location, by default the current one."""

    def load_table(self, topic: str) -> HasProperties:
        """The table of a topic as it is now."""
