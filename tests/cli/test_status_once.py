"""A damaged file is told once by status, whoever has met it before: it was told by the look, a clean and verify."""

from __future__ import annotations

from pathlib import Path

from keptlog.home import open_home
from keptlog.log.record import NewRecord
from tests.cli.conftest import Run

NOW_MS = 1_700_000_000_000


def test_a_damaged_file_that_a_clean_and_verify_have_met_is_told_once(keptlog: Run, home: Path) -> None:
    store = open_home().store
    store.create_topic("users", 1, {"cleanup.policy": "compact", "segment.ms": "1"})
    for run_id in ("one", "two"):
        store.append("users", [NewRecord(b"a", b"1", NOW_MS)], run_id, NOW_MS)
    file = min(home.rglob("data/partition=0/*.parquet"))
    file.write_bytes(file.read_bytes()[:100])
    assert keptlog("verify").code == 1
    assert keptlog("clean").code == 1

    told = keptlog("status")

    assert told.code == 1
    assert (told.out + told.err).count(file.name) == 1
    assert "1 clean failed with: a damaged file, which is told below" in told.out
    assert f"keptlog: users-0: file://{file} has 100 bytes" in told.err
    assert keptlog("status", "--json").json["broken"].keys() == {"users-0"}
