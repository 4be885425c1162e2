"""What a metadata file says is read packed or not, whatever it is called; damage is told as one kind of error."""

from __future__ import annotations

import gzip
import json

import pytest

from keptlog.table.metadata.metadata_json import metadata_json

_TOLD = {"format-version": 2, "table-uuid": "e7f1"}


@pytest.mark.parametrize("packed", [False, True])
def test_it_is_read_packed_or_not(packed: bool) -> None:
    plain = json.dumps(_TOLD).encode()
    assert metadata_json(gzip.compress(plain) if packed else plain) == _TOLD


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[1]",
        b'"a"',
        gzip.compress(b"{}" * 9)[:-9],
        gzip.compress(b"{}")[:12] + b"\0" * 9,
        b"\x1f\x8b",
        b"[" * 100_000,
    ],
)
def test_what_is_damaged_or_no_object_is_a_value_error(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        metadata_json(content)
