"""A home that a group shares: what the umask gives to others, each file of a home gives."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.table.stores import append_each, create


@pytest.mark.parametrize("umask", [0o002, 0o022, 0o077])
def test_each_file_of_a_home_can_be_written_by_whom_the_umask_lets(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        append_each(create(tmp_path / "home"), [("k", "v")])
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "home").rglob("*") if path.is_file()}
    assert modes["catalog.db"] == 0o666 & ~umask
    assert set(modes.values()) == {0o666 & ~umask}
