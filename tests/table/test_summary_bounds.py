"""What summaries of snapshots say of partitions: the values in it of columns with personal data, as they were."""

from __future__ import annotations

import json
from typing import Any

import pytest

from keptlog.kernels.key_search import Bound
from keptlog.table.metadata.columns import KEY, PARTITION, TIMESTAMP, VALUE
from keptlog.table.removal.summary_bounds import bounds_in_summaries

WHOLE = Bound("key", b"ada", is_whole=True)
FIELDS = [
    (PARTITION, "identity", "partition"),
    (KEY, "identity", "key"),
    (KEY, "truncate[3]", "key_trunc"),
    (KEY, "bucket[16]", "key_bucket"),
    (VALUE, "identity", "value"),
    (TIMESTAMP, "day", "timestamp_day"),
]


def metadata(*partitions: str, fields: list[tuple[int, str, str]] = FIELDS) -> bytes:
    stored: dict[str, Any] = {
        "partition-specs": [
            {"spec-id": 1, "fields": [{"source-id": of, "transform": how, "name": name} for of, how, name in fields]}
        ],
        "snapshots": [
            {"summary": {"operation": "append", **{f"partitions.{path}": "added-records=1" for path in partitions}}},
            {"snapshot-id": 2},
        ],
    }
    return json.dumps(stored).encode()


@pytest.mark.parametrize(
    ("partition", "expected"),
    [
        ("partition=0/key=YWRh", [WHOLE]),
        ("partition=0/key=%2B%2F8%3D", [Bound("key", b"\xfb\xff", is_whole=True)]),
        ("key=null", []),
        ("key_trunc=YWRh", [Bound("partition value", b"ada")]),
        ("key_bucket=7/timestamp_day=2026-01-01", []),
        ("value=YWRh", [Bound("partition value", b"ada")]),
        ("key=no+base64!", [Bound("key", b"no base64!", is_whole=True)]),
        ("gone=YWRh", [Bound("partition value", b"ada")]),
    ],
)
def test_values_are_told_as_they_were(partition: str, expected: list[Bound]) -> None:
    assert list(bounds_in_summaries(metadata(partition))) == expected


def test_a_partition_of_many_commits_is_told_once() -> None:
    stored = json.loads(metadata("key=YWRh"))
    stored["snapshots"] *= 3
    assert list(bounds_in_summaries(json.dumps(stored).encode())) == [WHOLE]


ODD = b'{"snapshots": [1, {"summary": null}, {"summary": 7}], "partition-specs": [{"fields": [{"source-id": []}]}]}'


@pytest.mark.parametrize("content", [b"[]", b"{}", b'{"snapshots": null, "partition-specs": null}', ODD])
def test_other_json_has_none(content: bytes) -> None:
    assert list(bounds_in_summaries(content)) == []


def test_half_a_file_is_no_json() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        list(bounds_in_summaries(b'{"snapshots": ['))
