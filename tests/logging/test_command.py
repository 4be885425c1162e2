"""The command shows warnings on stderr, one line each, once; more or less if it is told so."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from sqlalchemy.exc import OperationalError

from keptlog.cli import main


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """What the catalog's next commits meet."""
    waiting: list[Exception] = []
    commit = SqlCatalog.commit_table

    def faulty(catalog: SqlCatalog, *arguments: object) -> object:
        if waiting:
            raise waiting.pop(0)
        return commit(catalog, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(SqlCatalog, "commit_table", faulty)
    return waiting


@pytest.fixture
def append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., list[str]]:
    """Append a record, with options of the command before; what it wrote on stderr."""
    monkeypatch.setenv("KEPTLOG_HOME", str(tmp_path / "home"))
    records = tmp_path / "records.jsonl"
    records.write_text('{"key": "a", "value": "1"}\n')
    create = ["topic", "create", "t", "--partitions", "1", "--config", "cleanup.policy=compact"]

    def run(*arguments: str) -> tuple[int, list[str]]:
        monkeypatch.setattr("sys.argv", ["keptlog", *arguments])
        with pytest.raises(SystemExit) as exited:
            main()
        code = exited.value.code
        return code if isinstance(code, int) else 0, capsys.readouterr().err.splitlines()

    assert run(*create) == (0, [])

    def append(*options: str, expected: int = 0) -> list[str]:
        code, said = run(*options, "append", "t", "--file", str(records), "--quiet")
        assert code == expected, said
        return said

    return append


def race() -> Exception:
    return CommitFailedException("branch main has changed")


def outage() -> Exception:
    return OperationalError("UPDATE", {}, Exception("database is locked"))


def test_a_warning_is_one_line_and_is_shown_although_progress_is_not(
    append: Callable[..., list[str]], faults: list[Exception]
) -> None:
    faults += [outage(), race()]
    [line] = append()
    assert line.startswith("keptlog: topic t, run ")
    assert "database is locked" in line


def test_nothing_is_said_twice_where_the_root_logger_has_a_handler(
    append: Callable[..., list[str]], faults: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            pytest.fail(record.getMessage())

    monkeypatch.setattr(logging.getLogger(), "handlers", [Handler()])
    faults += [outage()]
    assert len(append()) == 1


def test_an_option_or_the_environment_asks_for_more_or_less(
    append: Callable[..., list[str]], faults: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    faults += [race()]
    assert len(append("--log-level", "info")) == 1
    faults += [outage()]
    assert append("--log-level", "ERROR") == []
    monkeypatch.setenv("KEPTLOG_LOG_LEVEL", "INFO")
    faults += [race()]
    assert len(append()) == 1
    monkeypatch.setenv("KEPTLOG_LOG_LEVEL", "loud")
    [line] = append(expected=2)
    assert "'loud' is not one of 'debug'" in line


def test_a_program_that_calls_the_library_hears_nothing_unless_it_asks() -> None:
    logger = logging.getLogger("keptlog")
    assert logger.level == logging.NOTSET
    assert [type(handler) for handler in logger.handlers] == [logging.NullHandler]
