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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from keptlog.log.config import TopicConfig
from keptlog.log.record import Record
from tests.conformance.books import Books, books_of, fitting
from tests.conformance.cases import Difference, Fields, NotUnderstoodError, case_fields, compacted, understood
from tests.conformance.comparison import AT_THE_DOOR, Comparison
from tests.conformance.cut import Shift, kafkas_end, shift_of, unkeyed_between
from tests.conformance.logs import CaseLog, Pass, PassResult, RuleLog
from tests.conformance.transactions import Batch, Source, batch_of

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
_NOT_REPLICATED = Difference(33, "what lies above the high watermark may be taken back, and stays out")


def run(case: Fields, open_log: Callable[[dict[str, str]], CaseLog]) -> list[Difference]:
    fields = case_fields(case, {"config"}, {"steps"})
    settings = compacted(fields.get("config", {}))
    history = History(open_log(settings), TopicConfig.of(settings))
    if not history.config.strategy.has_versions:
        history.books = books_of(history.source, history.config.delete_retention_ms, fields.get("last_batch_rule"))
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
    books: list[Books] = field(default_factory=list)
    """Kafka's, under each rule that fits what the case has said so far."""
    is_beyond: bool = False
    """Whether a pass went beyond the last stable offset: Kafka's cleaner never does, whatever a case asks for."""
    differences: list[Difference] = field(default_factory=list)

    def apply(self, step: Fields, *, is_active_growing: bool = False) -> None:
        """One step; ``is_active_growing`` if a later one appends to the segment that is active now."""
        match step["op"]:
            case "append":
                understood(step, "append", set(), {"op", "batches"})
                self._append([batch_of(each) for each in step["batches"]])
            case "roll":
                understood(step, "roll", {"base"}, {"op"})
                self.source.roll(step.get("base"))
            case "set_hw":
                understood(step, "set_hw", set(), {"op", "value"})
                self.source.high_watermark = step["value"]
            case "expire_producers":
                understood(step, "expire_producers", set(), {"op", "pids"})
                for each in self.books:
                    each.expire(step["pids"])
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

    def _append(self, batches: Sequence[Batch]) -> None:
        self.source.batches += batches
        for books in self.books:
            for batch in batches:
                books.append(batch)

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
        _, mapped = self._mapping(self.log.records()).latest(asked) if "map" in expect else (0, {})
        recopied = self._recopied(asked)
        result = self.log.clean(asked)
        self.left_alone = max(0, recopied - result.counts.total)
        kafkas_end_offset = kafkas_end(self.source, asked, result.end_offset)
        self._note_partial(asked, result, kafkas_end_offset)
        self._note_unkeyed(kafkas_end_offset, result.end_offset)
        for books in self.books:
            books.clean(asked, step.get("latest_offset_override"))
        self.is_beyond |= bool(self.books) and asked.end_offset > self.source.last_stable_offset
        if self.source.has_transactions:
            self.differences.append(AT_THE_DOOR)
        if self.source.has_unreplicated:
            self.differences.append(_NOT_REPLICATED)
        for name, wanted in expect.items():
            if self._is_told_by_books(name, wanted):
                continue
            if name in _NOT_HERE:
                self.differences.append(_NOT_HERE[name])
            elif name == "map":
                assert _named(mapped) == wanted or self.keeps_more_tombstones
            else:
                Comparison(self, result, expect, step["now"]).check(name, wanted)
        self.last_now_ms = step["now"]

    def _is_told_by_books(self, name: str, wanted: object) -> bool:
        """Hold the case to Kafka's books; true if only they can tell, since Kafka's cleaner never gets there."""
        if not self.books:
            return False
        books = fitting(self.books, name, wanted)
        assert books or self.is_beyond, (name, wanted, [each.told(name) for each in self.books])
        self.books = books
        return bool(books) and self.is_beyond

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

    @property
    def keeps_more_tombstones(self) -> bool:
        """Whether there may be keys here whose tombstones Kafka has removed early. The books tell Kafka's map then."""
        return bool(self.books) and bool(self.gone_early(self.last_now_ms))

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
        asked = Pass(step["start"], step["end"], 0, step.get("max_keys"))
        cleaned = self.log.records()
        later = [record for record in self.source.entered() if record.offset >= self.entered_offset]
        end_offset, latest = self._mapping(cleaned + later).latest(asked)
        actual = {
            "map_size": len(latest),
            "map": _named(latest),
        }
        if not self.books:
            actual["latest_offset"] = end_offset - 1  # else Kafka's books tell it: it may lie in a gap
        if "map_messages_read" in expect:
            read = [books.mapped_messages(asked) for books in self.books]
            assert not read or any(expect["map_messages_read"] in each for each in read), read
            self.differences.append(Difference(12, "the key column is read, no messages are counted while mapping"))
        for name in expect.keys() - {"map_messages_read"}:
            kafkas = [books.map_of(asked) for books in self.books]
            assert not kafkas or any(each.told()[name] == expect[name] for each in kafkas), (name, kafkas)
            is_beyond = self.is_beyond or asked.end_offset > self.source.last_stable_offset
            if name in actual and not (kafkas and (is_beyond or self.keeps_more_tombstones)):
                assert actual[name] == expect[name]

    def _mapping(self, records: Sequence[Record]) -> RuleLog:
        """A log that is only mapped."""
        mapping = RuleLog(self.config)
        for segment in self.source.by_segment(records):
            mapping.append(segment)
        return mapping


def _named(latest: Mapping[bytes, int]) -> dict[str, int]:
    return {key.decode(): offset for key, offset in latest.items()}
