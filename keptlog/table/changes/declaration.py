"""Brings a topic to what is declared of it: in one commit, or not at all.

    plan      the topic is read, and compared with what is declared      the change; refused here if it can't be done
    commit    the topic is read again: is it still what was compared?    settings, partitions, source, and what is told

So nothing lands that was not shown before: who alters the topic in between makes the change stale. What records come
in meanwhile matters only to a source: a topic with records of its own gets none. Like an alteration of settings
(``alteration``) the commit has an empty snapshot, so that it lands on exactly what it was checked on. A topic that is
new is created with all of it at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyiceberg.table import Table

from keptlog.errors import InvalidConfig, StalePlan
from keptlog.log.config import TopicConfig, settled
from keptlog.log.declared import DeclaredTopic, TopicChange, change_to, source_after
from keptlog.table.changes.alteration import Alteration, alteration_of
from keptlog.table.commits.commit import Committer, Land
from keptlog.table.commits.topics import TopicCreation
from keptlog.table.metadata.change import Change
from keptlog.table.metadata.loaded import loaded_if_there
from keptlog.table.metadata.logs import config_of, known_config
from keptlog.table.metadata.partitions import PARTITIONS, partition_count
from keptlog.table.metadata.state import (
    COMMENT,
    OWNERS,
    SOURCE,
    about_properties,
    read_about,
    read_source,
    source_to_json,
)
from keptlog.table.namespaces import NAMESPACE
from keptlog.table.waiting.reaching import reaching


@dataclass(frozen=True)
class Declaration:
    """A change of a topic that is there, on its way to be committed."""

    change: TopicChange
    topic_id: str
    """Of the topic that it was planned for."""
    run_id: str

    def commit(self, committer: Committer, broker_settings: Mapping[str, str]) -> None:
        """Check and commit.

        Raises:
            InvalidConfig: the configuration would not be valid, or the topic has records of its own and gets no source.
            StalePlan: the topic is not what it was when this was planned, or is another one; nothing landed.
            CommitStateUnknown: the catalog did not say whether it landed.
        """

        def prepare(table: Table) -> Land | None:
            if declared_topic(table) != self.change.before:
                raise StalePlan(
                    f"topic {self.change.name} was altered since it was compared; nothing was changed, apply again"
                )
            alteration = alteration_of(table, self.properties(table.properties, broker_settings), self.run_id)
            return alteration.written(table) if alteration else None

        remedy = "apply again, which finds out"
        committer.commit(Change(self.change.name, self.topic_id, self.run_id, remedy=remedy), prepare)

    def config_after(self, there: Mapping[str, str], broker_settings: Mapping[str, str]) -> TopicConfig:
        """The configuration of a topic with the properties ``there``, once this has landed.

        Raises:
            InvalidConfig: as ``properties`` does.
        """
        wanted = {**there, **self.properties(there, broker_settings)}
        left = {name: value for name, value in wanted.items() if value is not None}
        return config_of(self.change.name, left, broker_settings)

    def properties(self, there: Mapping[str, str], broker_settings: Mapping[str, str]) -> dict[str, str | None]:
        """The properties that it gives to a table with those that are ``there``; null for those that go.

        Raises:
            InvalidConfig: the configuration would not be valid, or its records are not of the source.
        """
        after = self.change.after
        settings = Alteration(self.change.name, self.change.to_set, self.change.unset, self.run_id)
        wanted: dict[str, str | None] = {
            **settings.properties(there, broker_settings),
            **dict.fromkeys((COMMENT, OWNERS)),
            **about_properties(after.about),
            PARTITIONS: str(after.partitions),
        }
        stored = read_source(self.change.name, there)
        source = source_after(stored.source, after.source, stored.positions)
        if source and source != stored.source:
            wanted[SOURCE] = source_to_json(source, there.get(SOURCE))
        return wanted


@dataclass(frozen=True)
class DeclaredCreation:
    """A topic that is declared and not there."""

    topic: DeclaredTopic

    def commit(self, committer: Committer, broker_settings: Mapping[str, str], new_id: Callable[[], str]) -> None:
        """Create it, with everything that is declared, at once; whoever was faster has done the same if it is so.

        Raises:
            InvalidConfig: it can't be.
            StalePlan: there is a topic of this name by now, and it is not what is declared.
            StorageUnavailable: catalog or storage can't be reached.
        """
        topic = self.topic
        stored = settled(topic.config, broker_settings)
        creation = TopicCreation(topic.name, topic.partitions or 1, topic.config, stored, topic.about, topic.source)
        with reaching(f"topic {topic.name} can't be created"):
            try:
                creation.carry_out(committer.catalog, committer.files, new_id)
            except InvalidConfig:
                there = loaded_if_there(committer.catalog, NAMESPACE, topic.name)
                if there is None:
                    raise
                if not self._is_as_declared(there):
                    what = f"topic {topic.name} was created since it was compared, and not as it is declared"
                    raise StalePlan(f"{what}; nothing was changed, apply again") from None

    def _is_as_declared(self, table: Table) -> bool:
        positions = read_source(self.topic.name, table.properties).positions
        try:
            return not change_to(declared_topic(table), self.topic, positions).differences
        except InvalidConfig:
            return False


def declared_topic(table: Table) -> DeclaredTopic:
    """What a topic is, as it could be declared.

    Raises:
        UnsupportedFormat, LogCorrupt: what is stored can't be read.
    """
    name, properties = table.name()[-1], table.properties
    return DeclaredTopic(
        name,
        partition_count(name, properties),
        known_config(name, properties),
        read_about(properties),
        read_source(name, properties).source,
    )
