"""A home: where the topics are, what the broker settings say, and what a program can do with it (docs/library.md).

``KEPTLOG_HOME`` (default ``./.keptlog``) is a folder with an embedded catalog, enough for one machine. A PyIceberg
catalog named ``keptlog``, configured PyIceberg's own way, takes its place when there is one.

Broker settings are Kafka's (``log.cleaner.min.cleanable.ratio`` …), in Kafka's own form: a ``server.properties`` in the
home, or environment variables, which win: ``KEPTLOG_BROKER_LOG_CLEANER_MIN_CLEANABLE_RATIO=0.3``.

Spark's settings stand in a ``spark.properties`` in the home, and where it runs in ``KEPTLOG_SPARK_MASTER``.

How a real broker is reached is said the same way, under librdkafka's names: a ``kafka.properties`` in the home, or
``KEPTLOG_KAFKA_SASL_PASSWORD=…``.

What is behind a call is imported when it is called: who needs a clock waits for no catalog, who appends for no Spark.
"""

from __future__ import annotations

import os
import secrets
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from keptlog import __version__
from keptlog.log.broker import BrokerConfig
from keptlog.passes.names import refuse_unknown
from keptlog.settings import (
    broker_settings,
    home_folder,
    home_path,
    own_file,
    read_properties,
    spark_master,
    spark_settings,
)
from keptlog.whole_file import warn_of_readers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from keptlog.engine.engine import Engine
    from keptlog.ingest.ingest_pass import Ingest
    from keptlog.kafka_client.settings import ClientSettings
    from keptlog.log.holder import Holdings
    from keptlog.log.plan import CleanPlan
    from keptlog.log.record import NewRecord, Record
    from keptlog.passes.apply import Applied, Applier
    from keptlog.passes.check import CheckResult
    from keptlog.passes.clean import Cleaner, Pass
    from keptlog.passes.erasures.erase import Eraser
    from keptlog.passes.purge import Purger
    from keptlog.passes.readers import Readers
    from keptlog.passes.receipts import Receipts
    from keptlog.passes.repair import Repairer, RepairProposal
    from keptlog.passes.retain import Retainer
    from keptlog.spark.driver import Spark
    from keptlog.table.chain.receipt_chain import ReceiptChain
    from keptlog.table.changes.append import AppendResult
    from keptlog.table.commits.topics import Topic
    from keptlog.table.store import LogStore

_KAFKA_FILE = "kafka.properties"
_PURGES_AT_ONCE = 8  # of topics in a far storage; each keeps a list of its files in memory


@dataclass(frozen=True, slots=True)
class Home:
    """An opened home: its topics, and what can be done with them.

    A name is a topic (``users``) or one of its topic-partitions (``users-0``). Times are ms since 1970 UTC; where
    ``now_ms`` is left out it is the wall clock's. All of it raises StorageUnavailable if catalog or storage can't be
    reached, and UnknownTopic, before anything is done, if a name means nothing.
    """

    path: Path
    broker: BrokerConfig
    store: LogStore
    """What is below: segments, snapshots, sources, purges."""
    receipts: Receipts[ReceiptChain]
    """What was deleted for good, signed and in one chain: ``list``, ``show``, ``verify``, ``export``."""

    def only(self, patterns: Sequence[str]) -> Home:
        """The same home with those topics alone whose names fit a pattern (``crm.*``); it knows no others."""
        from keptlog.table.chosen import ChosenTopics

        return replace(self, store=ChosenTopics(self.store, patterns))

    def topics(self) -> list[str]:
        """Names of all topics, sorted."""
        return self.store.topics()

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> Topic:
        """Create a topic of so many logs; ``config`` holds its settings under Kafka's names, values as text.

        Raises:
            InvalidConfig: name, partitions or a setting is not allowed, or the topic exists.
        """
        return self.store.create_topic(name, partitions, config or {})

    def describe_topic(self, name: str) -> Topic:
        """A topic: ``partitions``, ``raw_config`` as it was given, ``config`` with every default resolved."""
        return self.store.describe_topic(name)

    def alter_topic(self, name: str, to_set: Mapping[str, str], unset: Sequence[str] = ()) -> Topic:
        """Change a topic's settings; all of them or, if one is refused, none.

        Raises:
            InvalidConfig: the configuration would not be valid.
        """
        return self.store.alter_topic(name, to_set, unset)

    def delete_topic(self, name: str) -> int:
        """Delete a topic and all its records for good; gives the number of files that went.

        Raises:
            StorageUnavailable: some are left, or no receipt is sealed. The same call again, or a purge, finishes it.
            LogCorrupt: something else lies in its folder, or the storage knows more than the catalog; the topic stays.
        """
        deletion = self.store.delete_topic(name, wall_clock_ms())
        if deletion.unfinished:
            raise deletion.unfinished
        return len(deletion.deleted_files)

    def apply(self, file: Path | str, *, delete: Sequence[str] = (), now_ms: int | None = None) -> Applied:
        """Bring the topics to what a file declares of them (docs/topics.md), and delete those that ``delete`` names.

        A topic that fails stops no other: ``done`` has those that were created or altered, ``failed`` the error of each
        that was not, and ``plan`` what was to be done. ``applier.plan`` tells that alone, and changes nothing.

        Raises:
            InvalidConfig: something of the file can't be accepted; says what, with the lines. Nothing was changed.
        """
        from keptlog.topics_file.reading import load_topics

        plan = self.applier.plan(load_topics(Path(file)), delete)
        return self.applier.carry_out(plan, now_ms if now_ms is not None else wall_clock_ms())

    def append(
        self, topic: str, records: Iterable[NewRecord], *, now_ms: int | None = None, run_id: str | None = None
    ) -> AppendResult:
        """Append a batch in one commit, all of it or, if it raises, nothing; memory is bounded, whatever its length.

        Gives ``records`` and ``bytes``, and by partition the offsets from ``base_offset`` to ``last_offset``, both
        included. ``now_ms`` is the records' timestamp where the topic has message.timestamp.type=LogAppendTime.

        An append with a ``run_id`` of yours can be repeated: once landed, its result is given, with ``is_repeated``.

        Raises:
            InvalidRecord: one can't be appended; says which, counted from 1.
            InvalidConfig: the topic is ingested from a source.
            StalePlan: the commit lost every race against others; append again.
            CommitStateUnknown: the catalog did not say whether it landed; append again with the run id that it names.
        """
        return self.store.append(topic, records, run_id, now_ms if now_ms is not None else wall_clock_ms())

    def read(
        self, topic: str, partition: int | None = None, from_offset: int = 0, *, latest: bool = False
    ) -> Iterator[tuple[int, Record]]:
        """Pairs of partition and record, by partition and offset, from one snapshot, whatever is committed meanwhile.

        ``latest`` leaves the latest record of each key, none for a deleted key; then memory is that of the keys.

        Raises:
            StorageUnavailable: while iterating: a purge deleted a segment of this snapshot; read again.
        """
        return self.store.read(topic, partition, from_offset, latest=latest)

    def plan(self, *names: str, now_ms: int | None = None) -> CleanPlan:
        """What ``clean`` of the same names would do: ``steps``, most urgent first, and why others are ``left_alone``.

        Only file metrics are read; nothing is changed, and no Spark is started.
        """
        now_ms = now_ms if now_ms is not None else wall_clock_ms()
        return self.cleaner().plan(names, now_ms=now_ms, requested=bool(names))

    def clean(self, *names: str, now_ms: int | None = None, run_id: str | None = None) -> Pass:
        """Clean on Spark what is due or, with names, whatever is cleanable in those; one commit a topic.

        Spark is started when there is something to rewrite, at ``KEPTLOG_SPARK_MASTER`` (default ``local[*]``), and
        stays for the next clean. What cleans is shown in ``committed``: for each log its ``step``, the records by
        verdict in ``counts``, the segments ``removed`` and ``added``. A log that fails stops no other: ``failed`` has
        its error by topic-partition, and it is marked uncleanable and left alone for a while. ``run_id`` names the run
        in snapshots and files.

        Raises:
            InvalidConfig: Java is missing or too old.
            StorageUnavailable: Spark can't be started.
        """
        cleaner = self.cleaner()
        now_ms = now_ms if now_ms is not None else wall_clock_ms()
        planned = cleaner.begin(names, run_id or new_id(), now_ms=now_ms, requested=bool(names))
        refuse_unknown(planned.failed)
        return cleaner.commit(cleaner.stage(planned))

    def verify(self, *names: str, now_ms: int | None = None) -> dict[str, list[CheckResult]]:
        """Read the stored logs back and check G1 to G5 on them, and G8: topic-partition to one result a check.

        A result has the check's ``name``, ``passed``, a ``description`` and numbers in ``metadata``; its ``outcome`` is
        ok, broken or, where a file could not be had, not looked at. Every byte is read. What can't be read breaks its
        own log, or stands there under its topic, and stops no other. Without names, so does one that is half deleted.
        """
        from keptlog.passes.verify_pass import left_in, to_verify, verify_logs

        asked = to_verify(self.store, names)
        leave = left_in(self.path, asked, is_of_now=now_ms is None)
        return verify_logs(self.store, asked, now_ms if now_ms is not None else wall_clock_ms(), leave)

    def repair(self, topic: str, *, adopt: bool = False, now_ms: int | None = None) -> RepairProposal | None:
        """Bring a topic's state and snapshot together again, after a rollback or a commit of another program.

        Forward, to what was acknowledged; or, with ``adopt``, to the table as it is, where some of that may be lost:
        ``lost`` has its offsets. Null if they belong together. Notes that can't be read are written anew.

        Raises:
            LogCorrupt: it can't be done this way, and nothing was changed; says why, and what can be done.
            StalePlan: somebody committed meanwhile; nothing was repaired.
        """
        now_ms = now_ms if now_ms is not None else wall_clock_ms()
        self.repairer.mend_snapshot_id(topic)
        proposal = self.repairer.propose(topic, is_adoption=adopt, now_ms=now_ms)
        if proposal:
            self.repairer.repair(proposal, new_id(), now_ms=now_ms)
        else:
            self.repairer.mend_notes(topic, new_id(), now_ms=now_ms)
        return proposal

    def cleaner(self, spark: Callable[[], Spark] | None = None) -> Cleaner:
        """A cleaner of this home's logs; ``spark`` is called when there is something to rewrite, not before.

        Planning and committing need none. The home's own is taken if none is given.
        """
        from keptlog.passes.clean import Cleaner

        return Cleaner(self.store, self._engine(spark or partial(running_spark, self.path)), self.broker, monotonic_ms)

    @property
    def applier(self) -> Applier:
        """What compares the topics of this home with what is declared of them, and brings them there."""
        from keptlog.passes.apply import Applier
        from keptlog.table.waiting.side_by_side import AT_ONCE

        return Applier(self.store, new_id, 1 if self._is_embedded else AT_ONCE)

    @property
    def retainer(self) -> Retainer:
        """What removes old segments from this home's logs."""
        from keptlog.passes.retain import Retainer

        return Retainer(self.store, self.broker)

    @property
    def repairer(self) -> Repairer:
        """What mends topics of this home whose snapshot somebody else has moved."""
        from keptlog.passes.repair import Repairer

        return Repairer(self.store)

    @property
    def readers(self) -> Readers:
        """The registered readers of this home's topics, for whom tombstones wait: add, read, commit, list, remove."""
        from keptlog.passes.readers import Readers

        return Readers(self.store, new_id)

    @property
    def purger(self) -> Purger:
        """What deletes the files of this home that were replaced."""
        from keptlog.passes.purge import Purger
        from keptlog.table.purging.purge_memory import PurgeMemory

        is_far = not self._is_embedded
        memory = PurgeMemory(self.path, self.store.clock_guard.broker_settings, is_made=is_far)
        return Purger(self.store, memory, at_once=_PURGES_AT_ONCE if is_far else 1)

    @property
    def _is_embedded(self) -> bool:
        from keptlog.table.catalogs.embedded_catalog import EmbeddedCatalog

        return isinstance(self.store.committer.catalog, EmbeddedCatalog)

    @property
    def eraser(self) -> Eraser:
        """What erases keys from this home's topics, by their deadline."""
        from keptlog.passes.erasures.erase import Eraser, first_secret
        from keptlog.receipts.key_files import require_signer
        from keptlog.storage.erasure_secret import load_hasher
        from keptlog.table.chosen import whole

        make = partial(first_secret, whole(self.store), lambda: secrets.token_bytes(32))
        hasher = partial(load_hasher, self.path, os.environ, make)
        engine, interval_ms = self._engine(partial(running_spark, self.path)), self.broker.keptlog_purge_interval_ms
        signer, listed = partial(require_signer, self.path, os.environ), self.receipts.chain.listed
        return Eraser(self.store, engine, hasher, new_id, interval_ms, signer, listed)

    @property
    def holdings_here(self) -> Holdings:
        """What lies on this machine and may be of any topic: folders of Sparks that are gone, what looks remembered."""
        from keptlog.passes.doctor.this_machine import held_here
        from keptlog.table.chosen import whole

        return held_here(self.path, self.broker.keptlog_purge_interval_ms, whole(self.store).metadata_locations())

    def ingest(self, spark: Callable[[], Spark]) -> Ingest:
        """An ingest into this home's topics; ``spark`` is called when there is something to read, not before."""
        from keptlog.ingest.ingest_pass import Ingest
        from keptlog.spark.jobs import spark_engine

        return Ingest(self.store, spark_engine(spark, self.store.files), wall_clock_ms)

    def _engine(self, spark: Callable[[], Spark]) -> Engine:
        from keptlog.spark.bounded import bounded_engine

        return bounded_engine(spark, self.store.files, self.broker, (time.monotonic, time.sleep))


def open_home(path: Path | str | None = None, environment: Mapping[str, str] = os.environ) -> Home:
    """Open a home, by default ``KEPTLOG_HOME`` or ``./.keptlog``; nothing is created on disk before a topic is.

    Raises:
        InvalidConfig: a broker setting is unknown or out of range.
        StorageUnavailable: the catalog can't be opened.
    """
    from keptlog.notify.checks import forget_topic
    from keptlog.passes.receipts import Receipts
    from keptlog.receipts.key_files import signing_key, trusted_keys
    from keptlog.table.catalogs.catalog import open_catalog
    from keptlog.table.catalogs.embedded_catalog import EmbeddedCatalog
    from keptlog.table.chain.receipt_chain import ReceiptChain
    from keptlog.table.reading.cache import TopicCache
    from keptlog.table.removal.drafts import in_turn
    from keptlog.table.store import LogStore

    path = home_folder(Path(path)) if path else home_path(environment)
    settings, catalog = broker_settings(path, environment), open_catalog(path)
    is_far = not isinstance(catalog, EmbeddedCatalog)
    store = LogStore(catalog, settings, time.sleep, new_id, TopicCache(path, is_far))
    store.clock_guard.clock_ms = wall_clock_ms
    chain = ReceiptChain(store.committer, lambda: signing_key(path, environment), new_id, __version__)
    store.seal = in_turn(chain.append)
    store.forgets.append(lambda topic: forget_topic(path, topic))
    return Home(path, BrokerConfig.of(settings), store, Receipts(chain, lambda: trusted_keys(path)))


def spark_session(home: Path | None = None) -> SparkSession:
    """The Spark session of this process, on the master that ``KEPTLOG_SPARK_MASTER`` names; started if there is none.

    ``home``, by default the one that the environment names, may have settings for it.

    Raises:
        InvalidConfig: Java is missing or too old, or a setting can't be read.
        StorageUnavailable: the master can't be reached.
    """
    from keptlog.spark.session import start_session

    return start_session(spark_master(), spark_settings(home or home_path()))


def running_spark(home: Path | None = None) -> Spark:
    """As ``spark_session``, for whoever hands tasks out and asks for no frame: a local Spark is sooner there so."""
    from keptlog.spark.session import start_spark

    return start_spark(spark_master(), spark_settings(home or home_path()))


def wall_clock_ms() -> int:
    """Now, in ms since 1970 UTC."""
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """A clock for durations; it never goes back."""
    return time.monotonic_ns() // 1_000_000


def new_id() -> str:
    """A name for one run that no other run has."""
    return uuid.uuid4().hex


def client_settings(
    home: Path, file: Path | None = None, environment: Mapping[str, str] = os.environ
) -> ClientSettings:
    """How brokers are reached: ``kafka.properties`` in a home, or another file, and the environment, which wins.

    Raises:
        InvalidConfig: the file can't be read, or a setting is refused.
        StorageUnavailable: this user may not enter the home.
    """
    from keptlog.kafka_client.settings import ClientSettings, is_secret

    path = file or own_file(home, _KAFKA_FILE)
    settings = read_properties(path) if path else {}
    if path and any(is_secret(name) for name in settings):
        warn_of_readers(path)
    return ClientSettings.load(settings, environment, where=str(file or home / _KAFKA_FILE))
