"""A catalog of SQLite in which a writer has died in a commit: who may not bring it back is told what has happened."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run, checks_of, configure


def die_in_a_commit(database: Path) -> None:
    """As a writer that is killed: what he had written to the file stays, with the journal that takes it back."""
    died = (
        "import os, sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "for statement in ('pragma cache_size=1', 'begin immediate', 'create table junk(x)'):\n"
        "    connection.execute(statement)\n"
        "connection.executemany('insert into junk values (?)', [('y' * 4000,)] * 200)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", died, str(database)], check=False)
    assert database.with_name(f"{database.name}-journal").stat().st_size > 0


REMEDY = "any command of a user who may write there mends it; if the disk is mounted read-only, mount it for writing"


def dead_database(keptlog: Run, home: Path, configured_by: pytest.MonkeyPatch | None) -> Path:
    """The catalog in which a writer has died: the home's, or one that is configured."""
    database = home / ("other.db" if configured_by else "catalog.db")
    if configured_by:
        configure(database, configured_by)
        assert keptlog("topic", "create", "users").code == 0
    die_in_a_commit(database)
    return database


@pytest.mark.parametrize("command", ["status", "topic list", "doctor --no-probes"])
def test_who_may_only_read_is_told_of_a_writer_that_died_and_who_mends_it(
    user: Run, keptlog: Run, home: Path, command: str
) -> None:
    die_in_a_commit(home / "catalog.db")
    for path in (home, *home.rglob("*")):
        path.chmod(path.stat().st_mode & 0o555)
    told = user(*command.split())
    assert told.code == 1
    assert "a commit that its writer died in, with its journal" in told.out + told.err
    assert REMEDY in told.out + told.err
    assert "let this user write there" not in told.out + told.err
    assert "(SQLite says 'attempt to write a readonly database')" in told.out + told.err
    for path in (home, *home.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    assert keptlog("topic", "list").code == 0
    assert user("topic", "list").code == 0


@pytest.mark.parametrize("is_configured", [False, True], ids=["embedded", "configured"])
@pytest.mark.parametrize("shut", ["", "journal"], ids=["folder", "journal"])
def test_a_writer_that_died_is_told_from_a_disk_that_fails_by_who_may_write_to_the_database_alone(
    user: Run, keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch, *, shut: str, is_configured: bool
) -> None:
    """A folder is its owner's alone, or a journal: SQLite says "disk I/O error", or "unable to open database file"."""
    database = dead_database(keptlog, home, monkeypatch if is_configured else None)
    if shut:
        database.with_name(f"{database.name}-{shut}").chmod(0o000)
    else:
        home.chmod(0o555)
    told = user("topic", "list")
    assert told.code == 1
    assert "a commit that its writer died in, with its journal" in told.err
    assert REMEDY in told.err
    assert "SQLite says" in told.err
    assert "HalfDone" not in told.err  # the name of a class of ours
    checks = checks_of(user("doctor", "--no-probes", "--json"))
    [found] = [each for check in checks.values() for each in check["problems"] if "its writer died in" in each["what"]]
    assert found["todo"] == f"{REMEDY}; put nothing back from a copy"


@pytest.mark.parametrize("is_configured", [False, True], ids=["embedded", "configured"])
def test_doctor_has_nothing_put_back_beside_the_journal_of_a_writer_that_died(
    user: Run, keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch, *, is_configured: bool
) -> None:
    """An older catalog would be damaged by it."""
    dead_database(keptlog, home, monkeypatch if is_configured else None)
    for path in (home, *home.rglob("*")):
        path.chmod(path.stat().st_mode & 0o555)
    checks = checks_of(user("doctor", "--no-probes", "--json"))
    [found] = [each for check in checks.values() for each in check["problems"] if "its writer died in" in each["what"]]
    assert "catalog.db-journal" not in found["what"]
    assert found["cause"] == "a writer died in a commit, and this user may not take back what is half done"
    assert found["todo"] == f"{REMEDY}; put nothing back from a copy"
