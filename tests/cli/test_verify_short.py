"""What verify prints is as long as what is wrong: a home of 2,000 logs printed 14,000 lines that said ok."""

from __future__ import annotations

import pytest

from keptlog.home import open_home
from keptlog.log.record import NewRecord
from tests.cli.conftest import Run

NOW_MS = 1_700_000_000_000


@pytest.fixture
def users(keptlog: Run) -> None:
    store = open_home().store
    store.create_topic("users", 1, {"cleanup.policy": "compact"})
    store.append("users", [NewRecord(b"a", b"1", NOW_MS)], "run", NOW_MS)


@pytest.mark.usefixtures("users")
@pytest.mark.parametrize("names", [(), ("users",)], ids=["all", "one"])
def test_where_all_is_fine_there_is_one_line(keptlog: Run, names: tuple[str, ...]) -> None:
    told = keptlog("verify", *names)
    assert (told.code, told.out) == (0, "1 log: 7 checks, all ok\n")
    assert len(keptlog("verify", *names, "--json").json["checks"]) == 7


@pytest.mark.usefixtures("users")
def test_each_check_is_told_on_request(keptlog: Run) -> None:
    lines = keptlog("verify", "--full").out.splitlines()
    assert [line.split()[1] for line in lines[1:-1]] == ["G1", "G2", "G3", "G4", "G5", "max_compaction_lag", "G8"]
    assert lines[-1] == "1 log: 7 checks, all ok"


@pytest.mark.usefixtures("users")
def test_what_is_wrong_is_told_whole_without_what_is_fine(keptlog: Run) -> None:
    assert keptlog("topic", "alter", "users", "--config", "max.compaction.lag.ms=1").code == 0
    told = keptlog("verify")
    _, *wrong, last = told.out.splitlines()
    assert told.code == 1
    assert ["BROKEN" in line for line in wrong] == [True]
    assert last == "1 log: 7 checks, 6 ok, 1 BROKEN"


@pytest.mark.usefixtures("users")
def test_what_is_held_within_its_deadline_is_not_told_as_gone(keptlog: Run) -> None:
    """An older snapshot shows what was deleted: G8 passes, and says so."""
    assert keptlog("delete-records", "users", "0", "1").code == 0
    told = keptlog("verify")
    assert (told.code, told.out) == (0, "1 log: 7 checks, all ok; 1 that is ok has a note: see --full\n")
    full = keptlog("verify", "--full").out
    assert "nothing is past its deadline; older snapshots of users-0 keep 1 retired segment until" in full
    assert full.endswith("\n1 log: 7 checks, all ok\n")
