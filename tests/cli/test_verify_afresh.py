"""verify reads what is stored each time: what was whole when somebody looked may be damaged since."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.log.record import NewRecord
from tests.cli.conftest import Run

NOW_MS = 1_700_000_000_000


@pytest.fixture
def topic(keptlog: Run, home: Path) -> Path:
    """A topic at which verify has looked, and found all well."""
    store = open_home().store
    store.create_topic("users", 1, {"cleanup.policy": "compact"})
    store.append("users", [NewRecord(b"a", b"1", NOW_MS)], "run", NOW_MS)
    assert keptlog("verify", "users").code == 0
    return home / "warehouse" / "keptlog" / "users"


@pytest.mark.parametrize("file", ["metadata/*-m0.avro", "metadata/snap-*.avro", "metadata/00001-*.json", "data/*/*"])
@pytest.mark.parametrize("how", ["gone", "rotten"])
def test_a_file_that_is_gone_or_rotten_since_is_found(keptlog: Run, topic: Path, file: str, how: str) -> None:
    (path,) = topic.glob(file)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink() if how == "gone" else path.write_bytes(bytes(content))
    found = keptlog("verify", "users", "--json")
    assert found.code == 1
    (first,) = (each for each in found.json["checks"] if each["check"] == "G1")
    assert first["result"] == "BROKEN"
    assert path.name in first["what"]


def test_a_live_file_that_nobody_has_damaged_is_no_finding(keptlog: Run, topic: Path) -> None:
    assert topic.is_dir()
    assert keptlog("verify", "users").code == 0
