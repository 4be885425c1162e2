"""A digest tells logs apart that differ in anything, and does not see how they are cut."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.digest import Digest
from keptlog.log.record import Record
from keptlog.storage.schema import to_arrow

RECORDS = [
    Record(1, b"a", b"1", 10, headers=(("h", b"x"), ("h", None))),
    Record(2, b"", b"", 11),
    Record(5, b"b", None, 12, delete_horizon_ms=99),
]


def digest(*tables: list[Record]) -> str:
    found = Digest()
    for records in tables:
        found.update(to_arrow(0, records))
    return found.hexdigest()


def test_the_digest_does_not_depend_on_how_records_are_cut() -> None:
    assert digest(RECORDS) == digest(RECORDS[:1], [], RECORDS[1:])


@pytest.mark.parametrize(
    "other",
    [
        RECORDS[:2],
        [RECORDS[1], RECORDS[0], RECORDS[2]],
        [RECORDS[0], replace(RECORDS[1], value=None), RECORDS[2]],
        [RECORDS[0], replace(RECORDS[1], key=None), RECORDS[2]],
        [RECORDS[0], RECORDS[1], replace(RECORDS[2], delete_horizon_ms=None)],
        [RECORDS[0], RECORDS[1], replace(RECORDS[2], timestamp_ms=13)],
        [replace(RECORDS[0], headers=(("h", b"x"),)), RECORDS[1], RECORDS[2]],
        [replace(RECORDS[0], headers=(("h", b"x"), ("h", b""))), RECORDS[1], RECORDS[2]],
        [replace(RECORDS[0], key=b"a1", value=b""), RECORDS[1], RECORDS[2]],
        [replace(RECORDS[0], offset=0), RECORDS[1], RECORDS[2]],
    ],
)
def test_the_digest_changes_with_anything_that_a_reader_sees(other: list[Record]) -> None:
    assert digest(other) != digest(RECORDS)
