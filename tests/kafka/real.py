"""What the real table and the real kernels leave of a script: SQLite, Parquet, and a commit for each pass.

    Replay        decides, by keptlog's rules on Kafka's layout: whether a pass runs, over which range, what is deleted
    the table     gets what was appended, a file for each of Kafka's segments; carries each pass out and commits it
    compared      after each pass and at the end, with Kafka: records, delete horizons, checkpoint, log start

A pass leaves the table with other files than Kafka's segments: it keeps what does not change, and merges neighbours
(ADR 7, 19). They stay like that, so that the next pass meets files as passes leave them. Which records survive does not
hang on the layout, with three exceptions. Then the table's records are put into files anew, as they lie in Kafka:

- **A map was full.** Kafka has stamped tombstones behind the end of the pass, keptlog has not (ADR 12). They get
  Kafka's stamp, for the next pass to be the same.
- **The checkpoint was moved** by hand. What lies behind it is dirty again, and protected by the minimum lag, which goes
  by segment.
- **Segments are old.** Kafka's go by Kafka's bytes and times. The table's go by ``retention.bytes``, which is set to
  what is to be left, in bytes of Parquet: keptlog's own rule and its own commit take the files that hold the same.

Two things are not compared, for they are compared on the pure rules and say nothing here. The log end: the table has a
record far ahead in place of the active segment (``TableLog``). And full maps after a checkpoint was moved, or beside
records without a key: Kafka ends a pass at the end of a batch where keptlog, without batches, ends it at a record.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from keptlog.engine.engine import Engine
from keptlog.errors import KeptlogError
from keptlog.log.clean import CleanedLog
from keptlog.log.plan import retention_step
from keptlog.log.record import Record
from keptlog.log.result import Counts, RewriteResult
from keptlog.log.segment import Log, total_bytes
from keptlog.log.steps import Compact
from keptlog.storage.files import Files
from tests.conformance.logs import TOPIC, Pass, TableLog
from tests.in_process import in_process_engine
from tests.kafka.oracle import FOLDER, KafkaRefused, Operation, Script, State
from tests.kafka.replay import Replay, row_of
from tests.kafka.scripts import random_script
from tests.table.stores import new_id, staged

EngineOver = Callable[[Files], Engine]


@dataclass(frozen=True)
class Left:
    """What the table holds after a pass, or at the end of a script. ``rows`` are as the oracle writes records."""

    rows: list[list[Any]]
    log_start_offset: int
    checkpoint: int | None
    is_pass: bool


def script_for_the_table(seed: str) -> Script:
    """The random script of this seed, without full maps if it moves the checkpoint or has records without a key."""
    script = random_script(seed)
    has_unkeyed = any(record["key"] is None for operation in script for record in operation.get("records", []))
    if has_unkeyed or any(operation["op"] == "checkpoint" for operation in script):
        return [{name: value for name, value in operation.items() if name != "max_keys"} for operation in script]
    return script


def differing_on_table(
    script: Script, answer: list[State] | KafkaRefused, engine_over: EngineOver = in_process_engine
) -> str | None:
    """The first thing in which the table differs from what Kafka answered; null if nothing."""
    if isinstance(answer, KafkaRefused):
        return f"Kafka refused: {answer}"
    observed = [index for index, operation in enumerate(script) if operation.get("observe")]
    kafka = dict(zip(observed, answer, strict=True))
    with tempfile.TemporaryDirectory(prefix="keptlog-", dir=FOLDER) as home:
        try:
            for index, left, uncommitted in _left(script, Path(home), engine_over):
                difference = _difference(kafka[index], left, uncommitted)
                if difference:
                    return f"operation {index} ({script[index]['op']}), on the table, {difference}"
        except KeptlogError as error:
            return f"keptlog refused on the table: {error}"
    return None


def _left(script: Script, home: Path, engine_over: EngineOver) -> Iterator[tuple[int, Left, set[int]]]:
    """After each pass, and at the last operation that is observed: what is there, and the offsets that never enter."""
    replay = TableReplay(script[0], home=home, engine_over=engine_over)
    last = max((index for index, operation in enumerate(script) if operation.get("observe")), default=0)
    for index, operation in enumerate(script):
        outcome = replay.apply(operation) if index else {}
        if outcome.get("cleaned") and replay.left:
            yield index, replay.left, replay.producers.aborted
        elif index == last and operation.get("observe"):
            replay.land()
            yield index, replay.observe_table(is_pass=False), replay.producers.aborted


def _difference(kafka: State, left: Left, uncommitted: set[int]) -> str | None:
    checkpoint = kafka["checkpoint"] if left.is_pass else left.checkpoint
    # Below the log start nobody reads; from the first open transaction on, nothing has come in.
    visible = range(kafka["log_start_offset"], kafka["last_stable_offset"])
    horizons = {row[0]: row[-1] for row in left.rows}
    wanted = []
    for row in kafka["records"]:
        offset = row[0]
        if offset in visible and offset not in uncommitted:
            is_only_kafkas = left.is_pass and offset >= checkpoint and horizons.get(offset) is None  # ADR 12
            wanted.append([*row[:-1], None] if is_only_kafkas else row)
    found: list[tuple[str, Any, Any]] = [("records", wanted, left.rows)]
    if not _is_same_place(kafka["log_start_offset"], left.log_start_offset, horizons):
        found.append(("log_start_offset", kafka["log_start_offset"], left.log_start_offset))
    if not _is_same_place(checkpoint, left.checkpoint, horizons):
        found.append(("checkpoint", checkpoint, left.checkpoint))
    for name, theirs, ours in found:
        if theirs != ours:
            return f"{name}:\n    Kafka    {theirs}\n    keptlog  {ours}"
    return None


def _is_same_place(kafka: int | None, keptlog: int | None, offsets: dict[int, Any]) -> bool:
    """Whether no record lies between: a checkpoint moves with files only (ADR 1), and there may be none to move."""
    if kafka is None or keptlog is None:
        return kafka == keptlog or not offsets
    low, high = sorted((kafka, keptlog))
    return not any(low <= offset < high for offset in offsets)


@dataclass(kw_only=True)
class TableReplay(Replay):
    """A script on its way, with a table beside the rules."""

    home: Path
    engine_over: EngineOver
    table: TableLog = field(init=False)
    landed_end_offset: int = 0
    left: Left | None = None
    """What the last pass left, before anything is laid out again."""
    ended_early: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.table = TableLog(self.home, self.settings, self.engine_over)

    def apply(self, operation: Operation) -> State:
        if operation["op"] == "retain" and self._old_segments():
            self.land()
            self._lay_out_again()
        outcome = super().apply(operation)
        match operation["op"]:
            case "alter":
                self.table.store.alter_topic(TOPIC, operation["config"])
            case "retain" if outcome["deleted"]:
                self._retain_on_table()
            case "delete_records":
                self._delete_below_log_start()
            case "checkpoint":
                self._lay_out_again()
            case "clean" if outcome["cleaned"] and self.ended_early:
                self._lay_out_again()
        return outcome

    def land(self) -> None:
        """Bring in what may come in by now, and lies in Kafka's log still."""
        new = range(self.landed_end_offset, self._last_stable_offset)
        self.landed_end_offset = new.stop
        parts = [[record for record in each.records if record.offset in new] for each in self.layout.segments]
        if any(parts):
            self.table.land(part for part in parts if part)

    def observe_table(self, *, is_pass: bool) -> Left:
        """What the table holds now."""
        log = self._log_on_table()
        return Left([row_of(each) for each in self.table.records()], log.log_start_offset, log.checkpoint, is_pass)

    def _carried_out(self, step: Compact) -> CleanedLog:
        self.land()
        self.table.clean(Pass(step.first_dirty_offset, step.end_offset, step.now_ms, step.map_capacity.max_keys))
        self.left = self.observe_table(is_pass=True)
        cleaned = super()._carried_out(step)
        self.ended_early = isinstance(cleaned.step, Compact) and cleaned.step.ends_early
        return cleaned

    def _retain_on_table(self) -> None:
        files = self._log_on_table().segments[:-1]
        old = tuple(file for file in files if file.last_offset < self.log_start_offset)
        if len(old) == len(files):  # what stands for the active segment must not become the log start
            self._delete_below_log_start()
        elif old:
            left_bytes = total_bytes(self._log_on_table().segments[len(old) :])
            with self._altered({"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": str(left_bytes)}):
                step = retention_step(self._log_on_table(), self.now_ms)
                assert step
                assert step.segments == old
                self.table.store.retain(TOPIC, [step], new_id())

    @contextmanager
    def _altered(self, settings: dict[str, str]) -> Iterator[None]:
        """The topic under other settings than the script's, for as long as the block lasts."""
        unset = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
        self.table.store.alter_topic(TOPIC, settings)
        yield
        self.table.store.alter_topic(TOPIC, {name: self.settings.get(name, unset[name]) for name in settings})

    def _delete_below_log_start(self) -> None:
        """Retention may have moved the table's further, over a gap."""
        log = self._log_on_table()
        if log.log_start_offset < self.log_start_offset:
            self.table.store.delete_records(log.topic_partition, self.log_start_offset, new_id())

    def _log_on_table(self) -> Log:
        (log,) = self.table.store.logs(TOPIC)
        return log

    def _lay_out_again(self) -> None:
        """Put the table's records into a file for each of Kafka's segments, stamped as in Kafka."""
        in_kafka = {record.offset: record for segment in self.layout.segments for record in segment.records}
        parts: list[list[Record]] = [[] for _ in self.layout.segments]
        for record in self.table.records():
            horizon_ms = in_kafka.get(record.offset, record).delete_horizon_ms
            parts[self._segment_of(record.offset)].append(replace(record, delete_horizon_ms=horizon_ms))
        log = self._log_on_table()
        removed = log.segments[:-1]
        if not removed:
            return
        first_dirty_offset = log.checkpoint or 0
        expiry = self.table.step(Pass(first_dirty_offset, first_dirty_offset, self.now_ms))
        step = replace(expiry, segments=removed)
        added = [segment for part in parts for segment in staged(self.table.store, TOPIC, 0, part)]
        with self._altered({"cleanup.policy": "compact"}):
            self.table.commit(RewriteResult(step, removed, tuple(added), Counts(), 0, 0))

    def _segment_of(self, offset: int) -> int:
        return max(index for index, segment in enumerate(self.layout.segments) if segment.base_offset <= offset)
