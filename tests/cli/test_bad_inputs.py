"""Whatever people get wrong is one line that says what, the right exit code, and nothing is changed."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import pytest

from keptlog.home import open_home
from keptlog.log.record import NewRecord
from tests.cli.bad_inputs import BAD_INPUTS, BadInput
from tests.cli.conftest import Run

_TIME_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home for all rows, because none of them changes it."""
    home = tmp_path_factory.mktemp("bad") / "home"
    store = open_home(home).store
    store.create_topic("users", 2, {"cleanup.policy": "compact"})
    store.append("users", [NewRecord(b"a", b"1", _TIME_MS, number) for number in (0, 1)], "first", _TIME_MS)
    store.observe("users")
    return home


def _digest(home: Path) -> dict[str, str]:
    files = (path for path in sorted(home.rglob("*")) if path.is_file() and "cache" not in path.relative_to(home).parts)
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_there_are_enough_of_them() -> None:
    assert len(BAD_INPUTS) >= 150
    assert len({(each.id, *each.files.values()) for each in BAD_INPUTS}) == len(BAD_INPUTS)


@pytest.mark.parametrize("bad", BAD_INPUTS, ids=lambda bad: bad.id)
def test_it_is_one_line_with_its_exit_code_and_changes_nothing(
    keptlog: Run, filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: BadInput
) -> None:
    monkeypatch.setenv("KEPTLOG_HOME", str(filled))
    for name, value in bad.variables.items():
        monkeypatch.setenv(name, value)
    for name, content in bad.files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(bad.stdin)))
    before = _digest(filled)

    outcome = keptlog(*bad.arguments)

    assert (outcome.code, outcome.out) == (bad.code, ""), outcome
    assert outcome.err.startswith("keptlog: ")
    assert len(outcome.err.splitlines()) == 1, outcome.err
    assert bad.said in outcome.err
    assert "Traceback" not in outcome.err
    assert _digest(filled) == before
