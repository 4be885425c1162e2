"""Of many batches that are broken inside, each is told, and the sound ones are decoded a few times, not for each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from keptlog.log.record import Record
from keptlog.sources.kafka_log import record_batch
from tests.sources.kafka_log.encoder import batch, read_log, whole_batch, write_segment

BATCHES = 256


def test_the_work_grows_with_the_batches_and_not_with_their_square(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode, decoded = record_batch.decode, 0

    def counting(batches: Sequence[Any], payloads: Sequence[Any]) -> Any:
        nonlocal decoded
        decoded += len(batches)
        return decode(batches, payloads)

    monkeypatch.setattr(record_batch, "decode", counting)
    sound = {offset: batch([Record(offset, b"key", b"value", 1_000)]) for offset in range(0, BATCHES, 2)}
    broken = {offset: whole_batch(b"\0", (offset, offset), (1_000, 1_000), 1) for offset in range(1, BATCHES, 2)}
    write_segment(tmp_path, 0, [(sound | broken)[offset] for offset in range(BATCHES)])
    read = read_log(tmp_path, skip_corrupt=True)
    assert read.offsets == sorted(sound)
    assert len({str(each) for each in read.skipped}) == len(broken)
    assert decoded <= BATCHES * BATCHES.bit_length()


def test_what_no_table_can_hold_around_broken_batches_is_one_line_as_without_them(tmp_path: Path) -> None:
    unfit = [batch([Record(offset, b"key", b"value", 2**62)]) for offset in (0, 2, 4)]
    broken = [whole_batch(b"\0", (offset, offset), (1_000, 1_000), 1) for offset in (1, 3)]
    write_segment(tmp_path, 0, [unfit[0], broken[0], unfit[1], broken[1], unfit[2]])
    read = read_log(tmp_path, skip_corrupt=True)
    assert [(each.next_offset, each.end_offset, each.count) for each in read.unfit] == [(0, 5, 3)]
    assert len({str(each) for each in read.skipped}) == len(broken)
