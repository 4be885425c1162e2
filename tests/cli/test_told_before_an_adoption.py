"""Which records an adoption gives up is told before it is done, whole: afterwards nobody can find out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.passes.repair import Repairer
from tests.cli.conftest import Run
from tests.table.foreign import delete_rows

GONE = range(0, 60, 2)
LOST = f"users-0: LOST, 30 acknowledged offsets: {', '.join(map(str, GONE))}\n"


@pytest.fixture
def many_lost(keptlog: Run, lines: Callable[..., str], home: Path) -> None:
    """Every second record of sixty was deleted by another program."""
    assert keptlog("topic", "create", "users").code == 0
    records = [{"key": f"k{offset}", "value": "1"} for offset in range(60)]
    assert keptlog("append", "users", "--file", lines(*records)).code == 0
    delete_rows(home, f"offset in ({', '.join(map(str, GONE))})", "users")


@pytest.mark.usefixtures("many_lost")
def test_also_where_the_answer_is_json_and_never_comes(keptlog: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    repair: Callable[..., object] = Repairer.repair

    def repair_and_lose_the_storage(self: Repairer, *given: object, **how: object) -> None:
        repair(self, *given, **how)
        raise StorageUnavailable("the storage is away")

    monkeypatch.setattr(Repairer, "repair", repair_and_lose_the_storage)
    done = keptlog("repair", "users", "--adopt", "--yes", "--json")
    assert (done.code, LOST in done.err) == (1, True)
    monkeypatch.setattr(Repairer, "repair", repair)
    assert keptlog("repair", "users", "--adopt", "--yes", "--json").json["happened"] is None


@pytest.mark.usefixtures("many_lost")
def test_all_of_them_and_not_the_first_alone(keptlog: Run) -> None:
    assert "and 10 more (all with --json)" in keptlog("repair", "users", "--adopt", "--dry-run").out
    done = keptlog("repair", "users", "--adopt", "--yes")
    assert (done.code, done.err, LOST in done.out) == (0, "", True)
