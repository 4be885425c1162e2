"""Loads the records of a topic into an asset or op of somebody's own, as the type that its parameter has.

    @dg.asset(ins={"users": dg.AssetIn(["users", "clean"])})
    def active_users(users: pl.LazyFrame) -> None: …

The assets of a topic name this manager themselves (``IO_MANAGER_KEY`` in their metadata), so a project's own manager
stays what it is, and nothing has to be said downstream. What is loaded is the state that the log tells: the latest
record of each key, and none for a deleted key, whether they were cleaned already or not. It is that of one snapshot,
of which the run's log and the input's metadata tell. Metadata of the ``AssetIn`` may ask for less, or for more:

    metadata={"columns": ["key", "value"]}      only these columns are read
    metadata={"latest": False}                  all records, superseded ones and tombstones too

Who has partitions itself, or a mapping to some of the asset's, gets exactly these topic-partitions. Who takes all of
them gets those that are there now: the asset graph knows of a new one after a reload only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import dagster as dg
from dagster._core.definitions.metadata import normalize_metadata

from keptlog.dagster.resources.loaded_as import loaded_as
from keptlog.dagster.resources.spark import session_of
from keptlog.errors import InvalidConfig
from keptlog.log.given.unknown_topic import unknown_log
from keptlog.log.words.counted import counted
from keptlog.storage.schema import SCHEMA

if TYPE_CHECKING:
    from keptlog.dagster.resources.log_store import LogStoreResource
    from keptlog.dagster.resources.spark import SessionSource
    from keptlog.table.reading.read import Reader
    from keptlog.table.reading.record_stream import RecordStream

TOPIC_KEY = "keptlog/topic"
"""In the metadata of an asset that can be loaded: the topic's name, whatever the asset is called."""
IO_MANAGER_KEY = "dagster/io_manager_key"
"""Dagster's name for the manager that loads an asset."""
_OPTIONS = ("columns", "latest")


@dataclass
class TopicIOManager(dg.IOManager):
    """Loads clean sections; it stores nothing."""

    log_store: LogStoreResource
    session: SessionSource

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        # An op that tells its materializations itself ends with a null, which Dagster hands on.
        if obj is not None:
            what = context.asset_key.to_user_string()
            raise InvalidConfig(f"{what} is made by keptlog, which takes no value for it: append to the topic")

    def load_input(self, context: dg.InputContext) -> object:
        """The records as the input's type says.

        Raises:
            InvalidConfig: its type is none that records become, or its metadata is no option.
            UnknownTopic: the topic is gone, or a topic-partition that is asked for.
            StorageUnavailable: catalog or storage can't be reached.
        """
        of = context.asset_key.to_user_string()
        upstream = context.upstream_output
        topic = (upstream.definition_metadata or {}).get(TOPIC_KEY) if upstream else None
        if not isinstance(topic, str):
            raise InvalidConfig(f"{of} can't be loaded: load the topic's clean section, which tells all of its state")
        loaded = loaded_as(context.dagster_type.typing_type, of)
        options = {name: value for name, value in (context.definition_metadata or {}).items() if "/" not in name}
        stream = _stream(self._reader(context, topic), options, of)
        _tell(context, topic, stream)
        return loaded(stream, self.session)

    def _reader(self, context: dg.InputContext, topic: str) -> Reader:
        """The topic-partitions that are asked for; all that are there now for who takes all."""
        self.log_store.require_begun()
        reader = self.log_store.store.reader(topic)
        if not context.has_asset_partitions or _takes_all(context):
            return reader
        asked = set(context.asset_partition_keys)
        logs = [log for log in reader.logs if str(log.topic_partition) in asked]
        for name in sorted(asked.difference(str(log.topic_partition) for log in logs)):
            raise unknown_log(name, [topic], lambda _: len(reader.logs))
        return replace(reader, logs=logs)


def topic_io_manager(log_store: str, spark: str) -> dg.IOManagerDefinition:
    """The manager of a home, whose resources have these keys. Spark starts if an input asks for a frame of Spark's."""

    @dg.io_manager(
        required_resource_keys={log_store, spark},
        description="Loads a topic's records into a downstream asset, as the type of its parameter.",
    )
    def manager(context: dg.InitResourceContext) -> TopicIOManager:
        store: LogStoreResource = getattr(context.resources, log_store)
        return TopicIOManager(store, session_of(getattr(context.resources, spark), store.path))

    return manager


def _takes_all(context: dg.InputContext) -> bool:
    """Whether all of an asset is asked for, and not partitions of it, as Dagster decides it too.

    Who loads it in no run, with ``load_asset_value``, names the partitions that it asks for.
    """
    if context._step_context is None:  # noqa: SLF001  # the public one raises, and nothing public tells
        return False
    assets = context.step_context.assets_def
    mapping = assets.get_partition_mapping_for_dep(context.asset_key) if assets else None
    if mapping is not None:
        return isinstance(mapping, dg.AllPartitionMapping)
    return assets is None or assets.partitions_def is None


def _stream(reader: Reader, options: dict[str, object], of: str) -> RecordStream:
    from keptlog.table.reading.record_stream import RecordStream  # noqa: PLC0415  # a run needs it, loading does not

    unknown = sorted(set(options).difference(_OPTIONS))
    if unknown:
        raise InvalidConfig(
            f"{of} can't be loaded: its AssetIn has metadata {unknown[0]!r}; it may have columns and latest"
        )
    columns, latest = options.get("columns", SCHEMA.names), options.get("latest", True)
    if not isinstance(latest, bool):
        raise InvalidConfig(
            f"{of} can't be loaded: latest={latest!r} in its AssetIn's metadata is neither True nor False"
        )
    if not isinstance(columns, list | tuple) or not columns or set(columns) - set(SCHEMA.names):
        names = ", ".join(SCHEMA.names)
        raise InvalidConfig(
            f"{of} can't be loaded: columns={columns!r} in its AssetIn's metadata; give some of {names}"
        )
    return RecordStream(reader, latest, tuple(columns))


def _tell(context: dg.InputContext, topic: str, stream: RecordStream) -> None:
    """Say what is read, in the run's log and at the event of the input.

    Dagster's own way, ``add_input_metadata``, refuses inputs of several partitions, and makes an observation of the
    asset of each read.
    """
    snapshot, logs = str(stream.reader.snapshot_id or "none yet"), len(stream.reader.logs)
    what = "the latest records" if stream.latest else "all records"
    context.log.info("%s: %s of %s, snapshot %s", topic, what, counted(logs, "topic-partition"), snapshot)
    told: dict[str, dg.RawMetadataValue] = {
        TOPIC_KEY: topic,
        "keptlog/snapshot_id": snapshot,
        "keptlog/topic_partitions": logs,
    }
    context._user_generated_metadata = {**context._user_generated_metadata, **normalize_metadata(told)}  # noqa: SLF001
