"""Pages of commands print what they show; their cleans take the Spark that other tests have warm."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.cli import main
from tests.readme.page import words_of
from tests.readme.transcript import comparable, lines_of, shell, steps


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("page", ["docs/tutorial.md", "docs/backup.md"])
def test_a_page_of_commands_prints_what_it_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A command that stands alone on its line runs in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KEPTLOG_HOME", raising=False)
    paste = shell(tmp_path)
    for step in steps(page):
        printed = ""
        for line in lines_of(step.commands):
            if line.startswith("keptlog ") and not set(line) & set("|<>&;$"):
                monkeypatch.setattr("sys.argv", words_of(line))
                with pytest.raises(SystemExit) as ended:
                    main()
                told = capfd.readouterr()
                assert not ended.value.code, f"{line}\n{told.err}"
                printed += told.out
            else:
                printed += paste(line)
        if step.shown is not None:
            assert comparable(printed) == comparable(step.shown), step.commands
