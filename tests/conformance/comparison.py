"""The log after a pass of a case, compared with what the case says that Kafka leaves.

Whoever looks only here finds that much is allowed to differ: what never entered is not known to keptlog. What exactly
Kafka has of it, and whether the case says that, ``books`` tells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from keptlog.log.record import LARGEST_TIMESTAMP_MS, Record
from tests.conformance.cases import Difference, Fields
from tests.conformance.logs import PassResult
from tests.conformance.transactions import Batch, in_text, is_listed, text_of

if TYPE_CHECKING:
    from tests.conformance.kinds.clean import History

AT_THE_DOOR = Difference(15, "transactions are resolved at the door: compared is what a read_committed consumer sees")
KEPT_EMPTY = Difference(15, "an empty batch is not kept: the log end offset is stored")


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
        rows = [[r.offset, text_of(r.key), text_of(r.value)] for r in self.found if r.offset not in self.kept_longer]
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
        assert [record.offset for record in self.found if is_listed(record)] == [
            offset for offset in wanted if offset not in outside
        ]

    def _keys_with_value(self, given: Sequence[object]) -> None:
        """Without offsets a key that Kafka keeps besides ours must be that of a record which never entered."""
        wanted = [in_text(key) for key in given]
        found = [text_of(record.key) for record in self.found if is_listed(record)]
        rest = iter(wanted)
        assert all(any(key == other for other in rest) for key in found), (found, wanted)
        besides: Counter[str | None] = Counter(wanted)
        besides.subtract(found)
        outside = Counter(text_of(record.key) for record in self.never_entered if is_listed(record))
        assert +besides <= outside, (found, wanted)

    def _next_dirty(self, wanted: int) -> None:
        """Offsets at which no record is make no difference: a gap, or an abort; nor does what goes early.

        Our pass has left all that it did not reach. Of what it reached it may have dropped anything.
        """
        if self.history.keeps_more_tombstones:
            return  # they may fill the map earlier
        low, high = sorted((wanted, self.result.end_offset))
        there = self.found if wanted == high else self.history.source.entered()
        between = {record.offset for record in there if low <= record.offset < high}
        assert not between or (wanted == low and between <= self.history.unkeyed_early), (
            wanted,
            self.result.end_offset,
        )

    def _latest_offset(self, wanted: int) -> None:
        self._next_dirty(wanted + 1)

    def _map_size(self, wanted: int) -> None:
        assert self.result.map_keys == wanted or self.history.keeps_more_tombstones

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
            self.history.differences.append(AT_THE_DOOR)
        else:
            there = {record.offset for record in self.found} - self.kept_longer
            assert not batch.offsets & there, (offset, there)
            self.history.differences.append(KEPT_EMPTY)

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
        # The books have told the number, if there are any.
        assert found == wanted or self._visits_more or self.history.source.has_transactions, (found, wanted)

    @property
    def _visits_more(self) -> bool:
        """Whether Kafka ended in a gap before the first record of a segment, which it visited and keptlog did not."""
        ends = [books.end_offset for books in self.history.books[:1]]
        bases = {end: self.history.source.segment_base_at(end) for end in ends}
        return any(
            base < end and not any(base <= record.offset < end for record in self.found) for end, base in bases.items()
        )
