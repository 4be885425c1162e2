"""A home is the same wherever it is unpacked, and goes into an archive as it came out of one."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from tests.frozen_homes import telling
from tests.frozen_homes.archive import PATH_BYTES, home_in, pack, unpack
from tests.frozen_homes.conftest import Frozen


def contents(archive: Path) -> dict[str, bytes]:
    """The files of an archive; of Avro, whose compression may be another library's, only the first bytes."""
    with tarfile.open(archive) as tar:
        files = {each.name: tar.extractfile(each) for each in tar.getmembers()}
        read = {name: file.read() for name, file in files.items() if file}
    return {name: content[:500] if content.startswith(b"Obj") else content for name, content in read.items()}


def test_a_home_that_is_packed_and_unpacked_at_another_place_is_the_same(frozen: Frozen, tmp_path: Path) -> None:
    again, elsewhere = tmp_path / "again.tar.xz", tmp_path / "elsewhere"
    elsewhere.mkdir()

    pack(frozen.home, again)

    assert contents(again) == contents(frozen.archive)
    assert telling.stored(unpack(again, elsewhere)) == frozen.topics


def test_a_place_without_room_for_a_home_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="too long"):
        home_in(tmp_path / ("x" * PATH_BYTES))
    assert len(os.fsencode(home_in(tmp_path))) == PATH_BYTES
