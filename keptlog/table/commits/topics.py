"""Topics as tables: what one is, and how it is made."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from keptlog.errors import CommitStateUnknown, InvalidConfig, LogCorrupt, StalePlan, UnknownTopic
from keptlog.log.config import TopicConfig
from keptlog.log.declared import About
from keptlog.log.given.given import whole_number
from keptlog.log.source import SourceIdentity
from keptlog.log.topic_partition import MAX_PARTITIONS, valid_topic_name
from keptlog.log.words.counted import counted
from keptlog.table.catalogs.catalog import make_namespace, metadata_locations, usual_location, views_in
from keptlog.table.catalogs.embedded import existing_topic, unfinished_deletion
from keptlog.table.catalogs.emptied import why_emptied
from keptlog.table.catalogs.shared_warehouse import may_be_shared
from keptlog.table.commits.loading import topic_names
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.format import CURRENT, FORMAT_VERSION
from keptlog.table.metadata.logs import config_of, raw_config
from keptlog.table.metadata.partitions import PARTITIONS, partition_count
from keptlog.table.metadata.prefixes import CONFIG_PREFIX, DEFAULT_PREFIX
from keptlog.table.metadata.schema import PARTITION_SPEC, SORT_ORDER, TABLE_PROPERTIES, TABLE_SCHEMA
from keptlog.table.metadata.state import SOURCE, about_properties, read_about, source_to_json
from keptlog.table.namespaces import NAMESPACE
from keptlog.table.removal.deletion import being_deleted
from keptlog.table.removal.own_folder import table_in
from keptlog.table.removal.topic_storage import drafts_among, left_behind
from keptlog.table.waiting.reach import OUT_OF_REACH, is_sure
from keptlog.table.waiting.reaching import one_line

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic as its table describes it. ``raw_config`` is what the topic sets itself, under Kafka's names."""

    name: str
    id: str
    """Its table's UUID, which tells it from a later topic of the same name."""
    partitions: int
    config: TopicConfig
    raw_config: Mapping[str, str] = field(hash=False)
    location: str
    snapshot_id: int | None
    """The current snapshot; null if nothing was ever appended."""
    about: About = field(default_factory=About)
    """Its description and owners."""

    @property
    def data_location(self) -> str:
        """The folder of its segments."""
        return f"{self.location}/data"


def topic_of(table: Table, broker_settings: Mapping[str, str]) -> Topic:
    """Describe the topic of a table.

    Raises:
        LogCorrupt: the table is not a topic's.
        InvalidConfig: its configuration can't be resolved over this broker's.
    """
    name = table.name()[-1]
    snapshot = table.current_snapshot()
    return Topic(
        name=name,
        id=str(table.metadata.table_uuid),
        partitions=partition_count(name, table.properties),
        config=config_of(name, table.properties, broker_settings),
        raw_config=raw_config(table.properties),
        location=table.location(),
        snapshot_id=snapshot.snapshot_id if snapshot else None,
        about=read_about(table.properties),
    )


def require_partition(topic: Topic, partition: int | None) -> None:
    """Refuse a partition that a topic does not have; null means all of them.

    Raises:
        UnknownTopic: it has none of this number.
        InvalidConfig: it is no whole number.
    """
    if partition is not None and not 0 <= whole_number(partition, "a partition") < topic.partitions:
        raise UnknownTopic(f"topic {topic.name!r} has no partition {partition}: use 0 to {topic.partitions - 1}")


def snapshot_of(table: Table, snapshot_id: int | None) -> Snapshot | None:
    """The snapshot of an id; null for null, which means the current one.

    Raises:
        InvalidConfig: there is none, or no longer.
    """
    if snapshot_id is None:
        return None
    snapshot = table.snapshot_by_id(snapshot_id)
    if snapshot is None:
        topic = table.name()[-1]
        raise InvalidConfig(f"topic {topic} has no snapshot {snapshot_id}, or it has expired: read the current one")
    return snapshot


@dataclass(frozen=True)
class TopicCreation:
    """A topic that is to be made; ``config`` was checked."""

    name: str
    partitions: int
    config: Mapping[str, str]
    """What it sets itself."""
    stored: Mapping[str, str] = field(default_factory=dict)
    """What it keeps of the broker settings."""
    about: About = field(default_factory=About)
    source: SourceIdentity | None = None
    """Where its records are to come from; null if they are appended, or it is not known yet."""

    def carry_out(self, catalog: Catalog, files: TableFiles, new_id: Callable[[], str]) -> Table:
        """Create the topic's table.

        Raises:
            InvalidConfig: the name, the number of partitions, or a topic of this name, or nearly this name, exists.
            LogCorrupt: the catalog changed the schema.
            CommitStateUnknown: the catalog did not say whether it was created.
        """
        name = valid_topic_name(self.name)
        partitions = whole_number(self.partitions, f"topic {name}: the number of partitions")
        if not 1 <= partitions <= MAX_PARTITIONS:
            raise InvalidConfig(
                f"topic {name}: it can't have {counted(partitions, 'partition')}: use 1 to {MAX_PARTITIONS}"
            )
        self._require_free_name(catalog)
        if why := why_emptied(catalog):
            _logger.warning("%s: see that this is the catalog you mean. It gets its first topic now", why)
        properties = TABLE_PROPERTIES | {CONFIG_PREFIX + key: value for key, value in self.config.items()}
        properties |= stored_properties(self.stored) | about_properties(self.about)
        properties |= {SOURCE: source_to_json(self.source, None)} if self.source else {}
        properties |= {PARTITIONS: str(partitions), FORMAT_VERSION: str(CURRENT)}
        with _namespace(catalog, is_to_stay=why is None):
            table = self._created(catalog, self._location(catalog, files, new_id), properties)
            if name != name.lower() and not isinstance(catalog, SqlCatalog):
                self._require_name_kept(catalog, files, table)
        if table.schema() != TABLE_SCHEMA or table.spec() != PARTITION_SPEC:
            raise LogCorrupt(f"topic {name}: the catalog changed its schema to {table.schema()}; use another catalog")
        return table

    def _created(self, catalog: Catalog, location: str | None, properties: Mapping[str, str]) -> Table:
        how: dict[str, Any] = {"partition_spec": PARTITION_SPEC, "sort_order": SORT_ORDER, "properties": properties}
        try:
            return catalog.create_table((NAMESPACE, self.name), TABLE_SCHEMA, location, **how)
        except TableAlreadyExistsError as error:
            # A catalog behind REST may say so of any conflict. What is there need not be readable.
            if self.name in topic_names(catalog):
                raise existing_topic(self.name) from None
            told = f"topic {self.name}: the catalog refused it, and has no such topic ({one_line(error)})"
            raise StalePlan(f"{told}; try again, or choose another name") from error
        except OUT_OF_REACH as error:
            if is_sure(error):
                raise
            return self._found(catalog, properties, error)

    def _found(self, catalog: Catalog, properties: Mapping[str, str], error: Exception) -> Table:
        """The topic, if it was created although its creation ended in an error: an answer was lost.

        Raises:
            CommitStateUnknown: nobody can say.
        """
        try:
            table = catalog.load_table((NAMESPACE, self.name))
        except NoSuchTableError:
            raise error from None
        except OUT_OF_REACH:
            raise CommitStateUnknown(
                f"topic {self.name}: the catalog did not say whether it was created ({one_line(error)}); "
                "keptlog topic list shows whether it is there"
            ) from error
        # One that somebody else has made just now, exactly the same and as empty, is what was asked for too. Iceberg's
        # own properties a catalog may keep elsewhere.
        own = {key: value for key, value in properties.items() if key not in TABLE_PROPERTIES}
        if table.metadata.current_snapshot_id is not None or not own.items() <= table.properties.items():
            raise existing_topic(self.name) from error
        return table

    def _require_free_name(self, catalog: Catalog) -> None:
        """No topic has this name, in capitals or small letters: some file systems take both for one folder.

        The catalog would find the same name itself, but only after the table's metadata was written.

        Raises:
            InvalidConfig: with the other topic.
        """
        folded = self.name.lower()
        for other in metadata_locations(catalog) if isinstance(catalog, SqlCatalog) else topic_names(catalog):
            if other == self.name:
                raise existing_topic(self.name)
            if other.lower() == folded:
                raise InvalidConfig(
                    f"topic {self.name!r} differs from topic {other!r} only in capitals, and some file systems take "
                    "both for one folder: choose another name"
                )
        for other in being_deleted(catalog):
            if other.lower() == folded:
                raise InvalidConfig(str(unfinished_deletion(other)))
        for other in views_in(catalog) if isinstance(catalog, SqlCatalog) else ():
            if other.lower() == folded:
                raise InvalidConfig(
                    f"topic {self.name!r}: another engine has a view of this name, {other!r}: choose another name"
                )

    def _require_name_kept(self, catalog: Catalog, files: TableFiles, table: Table) -> None:
        """Take a topic back that the catalog has under another name: nobody would find it in a list (Glue, Hive).

        Raises:
            InvalidConfig: with a name that stays.
        """
        names = topic_names(catalog)
        if self.name in names or self.name.lower() not in names:
            return
        catalog.drop_table((NAMESPACE, self.name))
        files.delete(table.metadata_location)
        raise InvalidConfig(
            f"topic {self.name!r}: this catalog keeps names in small letters only: name it {self.name.lower()!r}"
        )

    def _location(self, catalog: Catalog, files: TableFiles, new_id: Callable[[], str]) -> str | None:
        """Where the table lies; null for the catalog's own choice.

        Never where files of an earlier topic are left: they would be mixed with those of this one. Below a warehouse
        that other catalogs may have, nor where anything else lies: it may be a topic of theirs without records.
        Of a creation that was killed there is something too, which costs no more than a longer name.
        """
        location = usual_location(catalog, NAMESPACE, self.name)
        if location is None:
            return None
        there = [each.path for each in files.list(location)]
        others = set(there).difference(drafts_among(location, there)) if may_be_shared(catalog) else ()
        left = next(iter([*left_behind(location, there), *sorted(others)]), None)
        if left is None:
            return location
        elsewhere = f"{location}-{new_id()}"
        whose = table_in(catalog, location)
        what = f"the table {whose} has its files" if whose else "files of an earlier topic are left"
        todo = "" if whose else f". {_WHOSE_FILES}"
        told = "topic %s: %s where it would lie, such as %s: it lies in %s%s"
        _logger.warning(told, self.name, what, left, elsewhere, todo)
        return elsewhere


_WHOSE_FILES = (
    "If this catalog has lost a topic, as after a restore of an older copy, its records may be there: keptlog doctor "
    "says how to put it back. Delete them only if none is missed, and no table of another catalog has them"
)


def stored_properties(stored: Mapping[str, str]) -> dict[str, str]:
    """The properties of what a topic keeps of the broker settings; an older keptlog takes them for the topic's own."""
    return {prefix + name: value for name, value in stored.items() for prefix in (CONFIG_PREFIX, DEFAULT_PREFIX)}


@contextlib.contextmanager
def _namespace(catalog: Catalog, *, is_to_stay: bool) -> Iterator[None]:
    """The namespace in which a topic is made.

    A namespace without a topic says that its topics were deleted (``why_emptied``). Where that is not true of a catalog
    it goes again if none is made.
    """
    is_made = make_namespace(catalog, NAMESPACE)
    try:
        yield
    except BaseException:
        if is_made and not is_to_stay:
            # Whoever has made a topic in it meanwhile keeps it: a namespace with a table is not dropped.
            with contextlib.suppress(Exception):
                catalog.drop_namespace((NAMESPACE,))
        raise
