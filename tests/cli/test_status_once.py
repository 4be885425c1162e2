"""A damaged file is told once by status, whoever has met it before: it was told by the look, a clean and verify."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.log.record import NewRecord
from tests.cli.conftest import Run

NOW_MS = 1_700_000_000_000


@pytest.fixture
def files(home: Path) -> list[Path]:
    """Of the segments of users-0, oldest first."""
    store = open_home().store
    store.create_topic("users", 1, {"cleanup.policy": "compact", "segment.ms": "1"})
    for run_id in ("one", "two", "three"):
        store.append("users", [NewRecord(b"a", b"1", NOW_MS)], run_id, NOW_MS)
    return sorted(home.rglob("data/partition=0/*.parquet"))


def damage(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:100])


def test_a_damaged_file_that_a_clean_and_verify_have_met_is_told_once(keptlog: Run, files: list[Path]) -> None:
    file = files[0]
    damage(file)
    assert keptlog("verify").code == 1
    assert keptlog("clean").code == 1

    told = keptlog("status")

    assert told.code == 1
    assert (told.out + told.err).count(file.name) == 1
    assert "1 clean failed with: a file is missing or damaged, as told below" in told.out
    assert f"keptlog: users-0: file://{file} has 100 bytes" in told.err
    assert keptlog("status", "--json").json["broken"].keys() == {"users-0"}


def test_a_damaged_file_beside_other_damaged_ones_is_told_once(keptlog: Run, files: list[Path]) -> None:
    """The line at the end said how many more there are, and was looked for with that in what a clean had met."""
    damage(files[0])
    assert keptlog("verify").code == 1
    assert keptlog("clean").code == 1
    damage(files[1])

    told = keptlog("status")

    assert told.code == 1
    assert (told.out + told.err).count(files[0].name) == 1
    assert told.err.rstrip().endswith("; and 1 more")


def test_what_verify_has_found_beside_what_is_told_anyway_is_told(keptlog: Run, files: list[Path]) -> None:
    for file in files[:2]:
        damage(file)
    assert keptlog("verify").code == 1
    assert f"verify found users-0 broken: G1: file://{files[0]} has" in (told := keptlog("status").err)
    assert files[1].name in told
