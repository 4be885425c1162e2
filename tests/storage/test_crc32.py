"""The checksum of a file is zlib's, whoever computes it."""

from __future__ import annotations

import importlib
import sys
import zlib

import pytest
import zlib_ng.zlib_ng
from hypothesis import given
from hypothesis import strategies as st

from keptlog.storage import crc32


@given(st.binary(), st.integers(0, 2**32 - 1))
def test_it_is_that_of_zlib_from_any_number_on(data: bytes, so_far: int) -> None:
    assert crc32.crc32(data) == zlib.crc32(data)
    assert crc32.crc32(data, so_far) == zlib.crc32(data, so_far)
    assert crc32.crc32(memoryview(data), so_far) == zlib.crc32(data, so_far)


def test_zlib_ng_computes_it_where_it_is_installed() -> None:
    assert crc32.crc32 is zlib_ng.zlib_ng.crc32


def test_a_worker_without_zlib_ng_takes_zlib(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "zlib_ng.zlib_ng", None)
        assert importlib.reload(crc32).crc32 is zlib.crc32
    assert importlib.reload(crc32).crc32 is zlib_ng.zlib_ng.crc32
