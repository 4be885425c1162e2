"""Topics as tables: create, describe, alter, list."""

from __future__ import annotations

import contextlib
import logging
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyiceberg.catalog import METADATA_LOCATION, Catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationError,
)
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot

from keptlog.errors import Action, CommitStateUnknown, InvalidConfig, LogCorrupt, UnknownTopic
from keptlog.folders import NOT_THERE
from keptlog.log.config import TopicConfig
from keptlog.log.declared import About
from keptlog.log.given.given import whole_number
from keptlog.log.given.unknown_topic import unknown_topic
from keptlog.log.source import SourceIdentity
from keptlog.log.topic_partition import MAX_PARTITIONS, valid_topic_name
from keptlog.log.words.counted import counted
from keptlog.storage.disk import NO_FILE
from keptlog.table.catalogs.catalog import metadata_locations, usual_location, views_in
from keptlog.table.catalogs.embedded import existing_topic, unfinished_deletion
from keptlog.table.io.files import TableFiles, local_path
from keptlog.table.metadata.format import CURRENT, FORMAT_VERSION, format_of
from keptlog.table.metadata.logs import config_of, raw_config
from keptlog.table.metadata.metadata_reading import loaded_now, unreadable
from keptlog.table.metadata.partitions import PARTITIONS, partition_count
from keptlog.table.metadata.prefixes import CONFIG_PREFIX, DEFAULT_PREFIX
from keptlog.table.metadata.schema import PARTITION_SPEC, SORT_ORDER, TABLE_PROPERTIES, TABLE_SCHEMA
from keptlog.table.metadata.state import SOURCE, about_properties, read_about, source_to_json
from keptlog.table.namespaces import NAMESPACE
from keptlog.table.removal.deletion import being_deleted
from keptlog.table.removal.own_folder import goes_on_as, table_in
from keptlog.table.removal.topic_storage import left_behind
from keptlog.table.waiting.reach import OUT_OF_REACH, is_sure
from keptlog.table.waiting.reaching import one_line

_logger = logging.getLogger(__name__)
_NOT_METADATA: tuple[type[Exception], ...] = (
    *NO_FILE,
    LogCorrupt,
    ValidationError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    EOFError,
    MemoryError,
    zlib.error,
)
"""What becomes of a metadata file that is none. A catalog loads it, whose client has other errors of its own."""


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


def topic_names(catalog: Catalog) -> list[str]:
    """All topics, sorted."""
    try:
        # A row of SQLite can hold bytes as its name. No command reaches that one; the others are there.
        return sorted(str(identifier[-1]) for identifier in catalog.list_tables((NAMESPACE,)))
    except NoSuchNamespaceError:
        return []


def load_topic_table(catalog: Catalog, name: str, namespace: str = NAMESPACE) -> Table:
    """The table of a topic as it is now: the one way to it for all who read or write the topic.

    In another namespace it is a table of keptlog's own, which is no topic, and has a format all the same.

    Raises:
        UnknownTopic: there is none.
        UnsupportedFormat: a newer keptlog has written it.
        LogCorrupt: its metadata file is damaged or gone, or its format is no version.
    """
    table = _table(catalog, name, namespace)
    format_of(name, table.properties)
    return table


def metadata_location(catalog: Catalog, name: str) -> str:
    """Where a topic's current metadata lies, whatever its format.

    Raises:
        UnknownTopic: there is none.
    """
    return _table(catalog, name).metadata_location


def _table(catalog: Catalog, name: str, namespace: str = NAMESPACE) -> Table:
    try:
        table = loaded_now(catalog, namespace, name)
    except (NoSuchTableError, NoSuchNamespaceError, NoSuchPropertyException) as error:
        _require_location(catalog, name, namespace, error)
        raise _unknown(catalog, name) from None
    except _NOT_METADATA as error:
        is_outage = isinstance(error, NOT_THERE) and not _is_storage_there(catalog)
        if is_outage or isinstance(error, InvalidConfig):
            raise
        _require_location(catalog, name, namespace, error)
        _require_one_name(catalog, name, namespace, error)
        raise unreadable(name, _metadata_file(catalog, name, namespace), error) from error
    _require_main(name, table)
    return table


def _require_main(name: str, table: Table) -> None:
    """Refuse a table whose current snapshot is not its main branch's: PyIceberg builds on the one, and shows the other.

    An append would be all that is there. Iceberg's other programs read no such metadata.
    """
    main, current = table.metadata.refs.get(MAIN_BRANCH), table.metadata.current_snapshot_id
    if main and main.snapshot_id != current:
        told = f"main is at snapshot {main.snapshot_id}, and the current one is {current}"
        raise unreadable(name, f"metadata file {table.metadata_location}", ValueError(told))


def _require_location(catalog: Catalog, name: str, namespace: str, error: Exception) -> None:
    """Refuse to call a table unknown that is there, and whose entry in the catalog leads to no metadata file.

    Raises:
        LogCorrupt: it does not.
    """
    if isinstance(error, NoSuchPropertyException) and METADATA_LOCATION in str(error):  # Glue's
        todo = f"set {METADATA_LOCATION} back to the newest one in its folder"
        raise LogCorrupt(f"topic {name}: its entry in the catalog names no metadata file; {todo}").of_property()
    if isinstance(catalog, SqlCatalog) and metadata_locations(catalog, namespace).get(name) == "":
        raise LogCorrupt(
            f"topic {name}: its row in the catalog names no metadata file; take the row out with PyIceberg's "
            f"catalog.drop_table({(namespace, name)!r}), and keptlog doctor names the file from which to put it back"
        ).of_property() from error


def _require_one_name(catalog: Catalog, name: str, namespace: str, error: Exception) -> None:
    """Refuse to call a metadata file lost that commits under another name of the same table have deleted.

    Raises:
        LogCorrupt: they have; a copy of the file or of the catalog would bring back what is older.
    """
    if not (isinstance(error, FileNotFoundError) and isinstance(catalog, SqlCatalog)):
        return
    path = metadata_locations(catalog, namespace).get(name, "")
    other = goes_on_as(catalog, (namespace, name), path)
    if other:
        told = LogCorrupt(
            f"topic {name}: its metadata file {path} is gone, and the table {other} has its files too: commits there "
            f"delete old metadata. Unless something was written to {name} since it has two names, take it out of the "
            f"catalog and leave the files, as PyIceberg's catalog.drop_table({(namespace, name)!r}) does"
        )
        told.action = Action.FIX_CONFIG  # put back, the file would be of an older time
        raise told from error


def _unknown(catalog: Catalog, name: str) -> UnknownTopic:
    """There is no such topic; what the others are called is worth no error of its own."""
    known: list[str] = []
    with contextlib.suppress(Exception):
        if name in being_deleted(catalog):
            return unfinished_deletion(name)
        known = topic_names(catalog)
    return unknown_topic(name, known)


def _metadata_file(catalog: Catalog, name: str, namespace: str) -> str:
    """What the catalog names as a table's metadata file, in words; some catalogs keep that to themselves."""
    location = metadata_locations(catalog, namespace).get(name) if isinstance(catalog, SqlCatalog) else None
    return f"metadata file {location}" if location else "the metadata file that the catalog names"


def _is_storage_there(catalog: Catalog) -> bool:
    """Whether the folder of all topics is there: it is not while a disk is not mounted, or while a file is there."""
    local = local_path(catalog.properties.get("warehouse", ""))
    return not local or Path(local).is_dir()


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
    """
    if partition is not None and not 0 <= partition < topic.partitions:
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
        with contextlib.suppress(NamespaceAlreadyExistsError):
            if not catalog.namespace_exists((NAMESPACE,)):
                catalog.create_namespace((NAMESPACE,))
        properties = TABLE_PROPERTIES | {CONFIG_PREFIX + key: value for key, value in self.config.items()}
        properties |= stored_properties(self.stored) | about_properties(self.about)
        properties |= {SOURCE: source_to_json(self.source, None)} if self.source else {}
        properties |= {PARTITIONS: str(partitions), FORMAT_VERSION: str(CURRENT)}
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
        except TableAlreadyExistsError:
            raise existing_topic(self.name) from None
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

        Never where files of an earlier topic are left: they would be mixed with those of this one.
        """
        location = usual_location(catalog, NAMESPACE, self.name)
        if location is None:
            return None
        left = next(iter(left_behind(location, (each.path for each in files.list(location)))), None)
        if left is None:
            return location
        elsewhere = f"{location}-{new_id()}"
        whose = table_in(catalog, location)
        what = f"the table {whose} has its files" if whose else "files of an earlier topic are left"
        todo = "" if whose else ". Delete them if no table of another catalog has them; none of this one has"
        told = "topic %s: %s where it would lie, such as %s: it lies in %s%s"
        _logger.warning(told, self.name, what, left, elsewhere, todo)
        return elsewhere


def stored_properties(stored: Mapping[str, str]) -> dict[str, str]:
    """The properties of what a topic keeps of the broker settings; an older keptlog takes them for the topic's own."""
    return {prefix + name: value for name, value in stored.items() for prefix in (CONFIG_PREFIX, DEFAULT_PREFIX)}
