"""Every command in a block of the docs is run as it stands there, in a home that has what its page speaks of."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.cli import main
from tests.readme.page import ROOT, files_of, own_words, words_of
from tests.readme.shown_commands import PAGES, command_lines, pages, shown

KEY = "customer-0007"
Paste = Callable[[str], tuple[int, str, str]]


@pytest.fixture
def paste(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Paste:
    """Runs a line in this process, in a folder with the files that pages name; who is asked says yes."""
    for name, text in {"KEPTLOG_SPARK_MASTER": "local[2]", "SPARK_LOCAL_DIRS": str(tmp_path / "spark")}.items():
        monkeypatch.setenv(name, text)
    monkeypatch.delenv("KEPTLOG_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "keys.txt").write_text(f"{KEY}\n")
    records = [{"key": KEY, "value": "1"}, {"key": "customer-0008", "value": "2"}, {"key": KEY, "value": "3"}]
    (tmp_path / "records.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))

    def run(line: str) -> tuple[int, str, str]:
        words, file = own_words(line)
        monkeypatch.setattr("sys.argv", words)
        monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
        with pytest.raises(SystemExit) as ended:
            main()
        told = capfd.readouterr()
        if file:
            (tmp_path / file).write_text(told.out)
        code = ended.value.code
        return code if isinstance(code, int) else 0, told.out, told.err

    return run


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("page", pages())
def test_every_command_that_a_page_shows_can_be_pasted(page: str, tmp_path: Path, paste: Paste) -> None:
    needs = shown(page)
    for name, text in {**files_of(page), **needs.files}.items():
        (tmp_path / name).write_text(text)
    for line in (*needs.begins_with, *command_lines(page)):
        command = " ".join(words_of(line))
        if command not in needs.not_run:
            code, out, err = paste(line)
            assert code == needs.codes.get(command, 0), f"{line}\n{out}{err}"
        if (public := tmp_path / ".keptlog" / "receipts.pub").exists():
            (tmp_path / public.name).write_bytes(public.read_bytes())


def test_what_is_not_run_is_on_its_page_and_says_where_it_is_tried() -> None:
    for page, needs in PAGES.items():
        commands = {" ".join(words_of(line)) for line in command_lines(page)}
        assert {*needs.not_run, *needs.codes} <= commands, page
        tests = [
            word.rstrip(";") for why in needs.not_run.values() for word in why.split() if word.startswith("tests/")
        ]
        assert len(tests) == len(needs.not_run)
        assert [test for test in tests if not (ROOT / test).is_file()] == []
