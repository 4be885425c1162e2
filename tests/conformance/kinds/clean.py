"""``clean``: appends, rolls and passes, against a log of the product.

keptlog has records where Kafka has batches. What a case expects of batches is asked of the records in them: a batch is
there if a record of it is. A batch that Kafka keeps although it is empty is a difference (ADR 15), as are producers'
sequences and the index of aborted transactions.

Three things follow where the map is full and a batch has several records, or is longer than its last record (ADR 12):

    an end in a gap           Kafka ends a pass behind the last offset of a batch, or at the base of a segment, keptlog
                              behind the last record or at the first one; no record lies between, so nothing differs
    a record without a key    before the one that finds the map full, and in its batch: Kafka takes only whole batches
                              along, so it goes in Kafka's next pass, here in this one
    a tombstone behind        the end, in a segment that was mapped in part: Kafka stamps it at once, keptlog when it
    the end                   cleans it, so that here its horizon is later
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property

from keptlog.log.config import TopicConfig
from keptlog.log.record import LARGEST_TIMESTAMP_MS, Record
from tests.conformance.cases import Difference, Fields, NotUnderstoodError, case_fields, compacted, understood
from tests.conformance.cut import Shift, kafkas_end, shift_of, unkeyed_between
from tests.conformance.logs import CaseLog, Pass, PassResult, RuleLog
from tests.conformance.transactions import Batch, Source, batch_of, in_text

_EXPECT = {
    "keys_with_value",
    "value_and_marker_offsets",
    "data",
    "next_dirty",
    "delete_horizons",
    "batch_last_offsets",
    "batch_base_offsets",
    "first_batch_last_offset",
    "messages_read",
    "messages_written",
    "invalid",
    "last_sequences",
    "aborted_txns",
    "map",
    "map_size",
    "latest_offset",
}
_NOT_HERE = {
    "last_sequences": Difference(15, "producers and their sequences stay in Kafka"),
    "aborted_txns": Difference(15, "there is no index of aborted transactions, for none enters"),
}
_AT_THE_DOOR = Difference(15, "transactions are resolved at the door: compared is what a read_committed consumer sees")
_NOT_REPLICATED = Difference(33, "what lies above the high watermark may be taken back, and stays out")
_KEPT_EMPTY = Difference(15, "an empty batch is not kept: the log end offset is stored")


def run(case: Fields, open_log: Callable[[dict[str, str]], CaseLog]) -> list[Difference]:
    fields = case_fields(case, {"config"}, {"steps"})
    settings = compacted(fields.get("config", {}))
    history = History(open_log(settings), TopicConfig.of(settings))
    for number, step in enumerate(fields["steps"]):
        later = [each["op"] for each in fields["steps"][number + 1 :] if each["op"] in {"append", "roll"}]
        history.apply(step, is_active_growing=later[:1] == ["append"])
    return list(dict.fromkeys(history.differences))


@dataclass
class History:
    """A case on its way."""

    log: CaseLog
    config: TopicConfig
    source: Source = field(default_factory=Source)
    entered_offset: int = 0
    held: list[Record] = field(default_factory=list)
    """Records of an active segment that gets more of them later: it enters when it is whole."""
    stamped_early: dict[int, int] = field(default_factory=dict)
    """Tombstones that Kafka stamped behind the end of a pass, and keptlog on purpose did not (ADR 12): by offset,
    Kafka's horizon, from which on a pass of it may remove them."""
    last_now_ms: int = -1
    """The clock of the pass before."""
    unkeyed_early: set[int] = field(default_factory=set)
    """Records without a key that Kafka still has: it takes them along only with the rest of their batch (ADR 12)."""
    shift: Shift = field(default_factory=Shift)
    """What that does to the counts of the last pass."""
    left_alone: int = 0
    """Records that the last pass did not look at, having nothing to compact; Kafka reads and writes them again."""
    differences: list[Difference] = field(default_factory=list)

    def apply(self, step: Fields, *, is_active_growing: bool = False) -> None:
        """One step; ``is_active_growing`` if a later one appends to the segment that is active now."""
        match step["op"]:
            case "append":
                understood(step, "append", set(), {"op", "batches"})
                self.source.batches += [batch_of(each) for each in step["batches"]]
            case "roll":
                understood(step, "roll", {"base"}, {"op"})
                self.source.roll(step.get("base"))
            case "set_hw":
                understood(step, "set_hw", set(), {"op", "value"})
                self.source.high_watermark = step["value"]
            case "expire_producers":
                understood(step, "expire_producers", set(), {"op", "pids"})
            case "clean":
                self._enter(is_active_growing=is_active_growing)
                self._clean(step)
            case "build_map":
                self._build_map(step)
            case unknown:
                raise NotUnderstoodError(f"there is no step {unknown!r}")

    def records(self) -> list[Record]:
        """All that is there for a reader; nothing that is held lies before anything that entered."""
        return self.log.records() + self.held

    def _enter(self, *, is_active_growing: bool) -> None:
        """Bring in what may come in by now, a segment for each of Kafka's; no pass reaches into the active one."""
        new = [record for record in self.source.entered() if record.offset >= self.entered_offset]
        active_base = self.source.segment_bases[-1]
        self.held = [record for record in new if is_active_growing and record.offset >= active_base]
        new = new[: len(new) - len(self.held)]
        for segment in self.source.by_segment(new):
            self.log.append(segment)
            self.entered_offset = segment[-1].offset + 1

    def _clean(self, step: Fields) -> None:
        known = {"max_keys", "latest_offset_override", "expect", "upper"}
        understood(step, "clean", known, {"op", "first_dirty", "now"})
        expect = understood(step.get("expect", {}), "expect", _EXPECT)
        # Without a bound the pass takes all that is closed.
        end_offset = self.source.segment_base_at(step.get("upper", self.source.log_end_offset))
        asked = Pass(step["first_dirty"], end_offset, step["now"], step.get("max_keys"))
        if "map" in expect:
            _, latest = self._mapping(self.log.records()).latest(asked)
            assert _named(latest) == expect["map"]
        recopied = self._recopied(asked)
        result = self.log.clean(asked)
        self.left_alone = max(0, recopied - result.counts.total)
        kafkas_end_offset = kafkas_end(self.source, asked, result.end_offset)
        self._note_partial(asked, result, kafkas_end_offset)
        self._note_unkeyed(kafkas_end_offset, result.end_offset)
        if self.source.has_transactions:
            self.differences.append(_AT_THE_DOOR)
        if self.source.has_unreplicated:
            self.differences.append(_NOT_REPLICATED)
        for name, wanted in expect.items():
            if name == "map":
                continue  # looked at before the clean
            if name in _NOT_HERE:
                self.differences.append(_NOT_HERE[name])
            else:
                Comparison(self, result, expect, step["now"]).check(name, wanted)
        self.last_now_ms = step["now"]

    def _recopied(self, asked: Pass) -> int:
        """How many records Kafka's pass reads although nothing is dirty: all of the segments that were ever cleaned."""
        if asked.first_dirty_offset < asked.end_offset:
            return 0
        bases = (self.source.segment_base_at(record.offset) for record in self.log.records())
        return sum(base < asked.first_dirty_offset for base in bases)

    def _note_partial(self, asked: Pass, result: PassResult, kafkas_end_offset: int) -> None:
        """Kafka visits the rest of a segment that it mapped in part, and stamps the tombstones in it."""
        last_base = self.source.segment_base_at(kafkas_end_offset)
        if asked.first_dirty_offset < kafkas_end_offset < asked.end_offset and last_base < kafkas_end_offset:
            after = [base for base in self.source.segment_bases if base > last_base]
            rest = range(result.end_offset, min([asked.end_offset, *after]))
            for each in self.log.records():
                if each.offset in rest and each.is_tombstone:
                    self.stamped_early.setdefault(each.offset, asked.now_ms + self.config.delete_retention_ms)

    def gone_early(self, now_ms: int) -> set[int]:
        """The tombstones that Kafka's passes may have removed by now, though they are not superseded."""
        return {offset for offset, horizon_ms in self.stamped_early.items() if horizon_ms <= now_ms}

    def _note_unkeyed(self, kafkas_end_offset: int, end_offset: int) -> None:
        """What only we took along: before our end, and in the batch that Kafka could not map to its end."""
        early = unkeyed_between(self.source, kafkas_end_offset, end_offset)
        before = self.unkeyed_early - early
        self.shift = Shift()
        if early or before:
            self.shift = shift_of(self.source, kafkas_end_offset, early, before, self.log.records())
        self.unkeyed_early = {offset for offset in before if offset >= kafkas_end_offset} | early
        if early:
            why = f"the records without a key at {sorted(early)} go a pass earlier: there are no batches"
            self.differences.append(Difference(12, why))

    def _build_map(self, step: Fields) -> None:
        understood(step, "build_map", {"max_keys"}, {"op", "start", "end", "expect"})
        expect = understood(step["expect"], "expect", {"map_size", "map", "map_messages_read", "latest_offset"})
        mapping = self._mapping(list(self.source.entered()))
        end_offset, latest = mapping.latest(Pass(step["start"], step["end"], 0, step.get("max_keys")))
        actual = {
            "map_size": len(latest),
            "map": _named(latest),
            "latest_offset": end_offset - 1,
        }
        if "map_messages_read" in expect:
            self.differences.append(Difference(12, "the key column is read, no messages are counted while mapping"))
        assert {name: actual[name] for name in expect if name in actual} == {
            name: value for name, value in expect.items() if name in actual
        }

    def _mapping(self, records: Sequence[Record]) -> RuleLog:
        """A log that is only mapped."""
        mapping = RuleLog(self.config)
        for segment in self.source.by_segment(records):
            mapping.append(segment)
        return mapping


@dataclass(frozen=True)
class Comparison:
    """The log after a pass, compared with what Kafka leaves."""

    history: History
    result: PassResult
    expect: Fields
    now_ms: int

    @property
    def found(self) -> list[Record]:
        return self.history.records()

    @property
    def never_entered(self) -> list[Record]:
        return list(self.history.source.never_entered())

    def check(self, name: str, wanted: object) -> None:
        getattr(self, f"_{name}")(wanted)

    def _data(self, wanted: Sequence[Sequence[object]]) -> None:
        outside = {record.offset for record in self.never_entered}
        rows = [[r.offset, _text(r.key), _text(r.value)] for r in self.found if r.offset not in self.kept_longer]
        outside |= self.history.unkeyed_early
        assert rows == [[row[0], *map(in_text, row[1:])] for row in wanted if row[0] not in outside]

    @cached_property
    def kept_longer(self) -> set[int]:
        """Tombstones that Kafka has removed already, because it stamped them too early: what else is expected tells."""
        may_be = {record.offset for record in self.found} & self.history.gone_early(self.now_ms)
        if "data" in self.expect:
            longer = may_be - {row[0] for row in self.expect["data"]}
        else:
            longer = {offset for batch in self._there() if self._is_missing(batch) for offset in batch.offsets} & may_be
        if longer:
            self.history.differences.append(
                Difference(
                    12, f"the tombstones at {sorted(longer)} stay until all older records of their keys are gone"
                )
            )
        return longer

    def _is_missing(self, batch: Batch) -> bool:
        """Whether what is expected of batches leaves this one out."""
        if "batch_last_offsets" in self.expect:
            return batch.last_offset not in set(self.expect["batch_last_offsets"])
        if "batch_base_offsets" in self.expect:
            return batch.base_offset not in set(self.expect["batch_base_offsets"])
        return batch.last_offset < int(self.expect.get("first_batch_last_offset", 0))

    def _value_and_marker_offsets(self, wanted: Sequence[int]) -> None:
        batches = self.history.source.batches
        markers = {batch.base_offset for batch in batches if batch.control}
        outside = markers | {record.offset for record in self.never_entered}
        assert [record.offset for record in self.found if _is_listed(record)] == [
            offset for offset in wanted if offset not in outside
        ]

    def _keys_with_value(self, given: Sequence[object]) -> None:
        """Without offsets a key that Kafka keeps besides ours must be that of a record which never entered."""
        wanted = [in_text(key) for key in given]
        found = [_text(record.key) for record in self.found if _is_listed(record)]
        rest = iter(wanted)
        assert all(any(key == other for other in rest) for key in found), (found, wanted)
        besides: Counter[str | None] = Counter(wanted)
        besides.subtract(found)
        outside = Counter(_text(record.key) for record in self.never_entered if _is_listed(record))
        assert +besides <= outside, (found, wanted)

    def _next_dirty(self, wanted: int) -> None:
        """Offsets at which nothing ever entered make no difference: a gap, or an abort; nor does what goes early."""
        low, high = sorted((wanted, self.result.end_offset))
        between = {record.offset for record in self.history.source.entered() if low <= record.offset < high}
        assert not between or (wanted == low and between <= self.history.unkeyed_early), (
            wanted,
            self.result.end_offset,
        )

    def _latest_offset(self, wanted: int) -> None:
        self._next_dirty(wanted + 1)

    def _map_size(self, wanted: int) -> None:
        assert self.result.map_keys == wanted

    def _delete_horizons(self, wanted: dict[str, int]) -> None:
        """By the last offset of a batch; all tombstones of a batch have the same (ADR 3)."""
        tombstones = {record.offset: record for record in self.found if record.is_tombstone}
        told: set[str] = set()
        for batch in self._data_batches():
            last_offset = str(batch.last_offset)
            for offset in (record.offset for record in batch.records if record.offset in tombstones):
                told.add(last_offset)
                self._check_horizon(tombstones[offset], wanted.get(last_offset))
        if wanted.keys() - told:
            self.history.differences.append(Difference(3, "a horizon belongs to a tombstone and goes with it"))

    def _check_horizon(self, tombstone: Record, kafkas_ms: int | None) -> None:
        horizon_ms = tombstone.delete_horizon_ms
        if horizon_ms == kafkas_ms:
            return
        if horizon_ms == LARGEST_TIMESTAMP_MS and kafkas_ms is not None and kafkas_ms > horizon_ms:
            self.history.differences.append(Difference(3, "a horizon is a time that readers can show: up to year 9999"))
            return
        where = (tombstone.offset, horizon_ms, kafkas_ms)
        assert tombstone.offset in self.history.stamped_early, where
        # None of Kafka's: its early stamp has let the tombstone go already.
        assert horizon_ms is None or kafkas_ms is None or horizon_ms > kafkas_ms, where
        why = "a tombstone behind the end of a pass is not stamped before it is cleaned"
        self.history.differences.append(Difference(12, why))

    def _batch_last_offsets(self, wanted: Sequence[int]) -> None:
        self._check_batches(wanted, lambda batch: batch.last_offset)

    def _batch_base_offsets(self, wanted: Sequence[int]) -> None:
        self._check_batches(wanted, lambda batch: batch.base_offset)

    def _first_batch_last_offset(self, wanted: int) -> None:
        offsets = [batch.last_offset for batch in self._batches_with_records()]
        if offsets[:1] != [wanted]:
            self._require_empty(wanted, lambda batch: batch.last_offset)

    def _check_batches(self, wanted: Sequence[int], place: Callable[[Batch], int]) -> None:
        found = [place(batch) for batch in self._batches_with_records()]
        assert [offset for offset in wanted if offset in found] == found
        for offset in wanted:
            if offset not in found:
                self._require_empty(offset, place)

    def _require_empty(self, offset: int, place: Callable[[Batch], int]) -> None:
        """A batch of Kafka's that is not here has no record that a reader sees."""
        (batch,) = [each for each in self.history.source.batches if place(each) == offset]
        outside = {record.offset for record in self.never_entered}
        if batch.control or all(record.offset in outside for record in batch.records):
            self.history.differences.append(_AT_THE_DOOR)
        else:
            there = {record.offset for record in self.found} - self.kept_longer
            assert not batch.offsets & there, (offset, there)
            self.history.differences.append(_KEPT_EMPTY)

    def _batches_with_records(self) -> list[Batch]:
        return self._there(self.kept_longer)

    def _there(self, without: AbstractSet[int] = frozenset()) -> list[Batch]:
        there = {record.offset for record in self.found} - without
        return [batch for batch in self._data_batches() if batch.offsets & there]

    def _data_batches(self) -> list[Batch]:
        return [batch for batch in self.history.source.batches if not batch.control]

    def _messages_read(self, wanted: int) -> None:
        self._note_left_alone()
        found = self.result.counts.total + self.history.shift.read + self.history.left_alone
        self._check_count(found, wanted, len(self.history.gone_early(self.history.last_now_ms)))

    def _messages_written(self, wanted: int) -> None:
        self._note_left_alone()
        found = self.result.counts.retained + self.history.shift.written + self.history.left_alone
        self._check_count(found, wanted, len(self.history.gone_early(self.now_ms)))

    def _invalid(self, wanted: int) -> None:
        self._check_count(self.result.counts.unkeyed + self.history.shift.unkeyed, wanted)

    def _note_left_alone(self) -> None:
        if self.history.left_alone:
            self.history.differences.append(
                Difference(6, "only segments with an expired tombstone are read; Kafka reads all")
            )

    def _check_count(self, found: int, wanted: int, at_most_more: int = 0) -> None:
        if wanted < found <= wanted + at_most_more:
            why = f"{found - wanted} tombstones more are counted, which Kafka stamped and removed early"
            self.history.differences.append(Difference(12, why))
            return
        assert found == wanted or self.history.source.has_transactions, (found, wanted)


def _is_listed(record: Record) -> bool:
    """Whether Kafka's tests list a record: with a key and a value."""
    return record.key is not None and record.value is not None


def _named(latest: Mapping[bytes, int]) -> dict[str, int]:
    return {key.decode(): offset for key, offset in latest.items()}


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
