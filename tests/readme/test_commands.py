"""What README says can be typed can be typed: its commands are run as they stand there, in one home, in their order.

Of the two that need a broker, and of commands in running text, it is seen to that the command and its options exist.
``test_pages.py`` runs the pages that show what is printed, and ``test_shown_commands.py`` those of all other pages.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from keptlog.cli import cli
from tests.readme.page import ROOT, commands, lines, words_of
from tests.readme.transcript import comparable, shell, steps

PAGES = ["README.md", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").glob("*.md")))]
RECORDS = lines("README.md", "Records in, state out")
NEEDS_A_BROKER = "--bootstrap"
BROKER_LOGS = "/var/lib/kafka/data"
OLD_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Pasted:
    """A folder in which README's five minutes were pasted into bash."""

    paste: Callable[[str], str]
    printed: list[str]

    def state(self) -> dict[str, str]:
        """The latest value of each key."""
        records = [json.loads(line) for line in self.paste("keptlog read users --latest").splitlines()]
        return {record["key"]: record["value"] for record in records}


@pytest.fixture(scope="module")
def readme(tmp_path_factory: pytest.TempPathFactory) -> Pasted:
    """Beside what README makes lie the files that its other lines name."""
    folder = tmp_path_factory.mktemp("readme")
    changes = [
        {"key": {"id": 7}, "value": {"before": None, "after": {"id": 7}, "op": "c", "source": {"ts_ms": OLD_MS}}},
        {"key": {"id": 8}, "value": {"before": None, "after": {"id": 8}, "op": "c", "source": {"ts_ms": OLD_MS}}},
        {"key": {"id": 7}, "value": {"before": {"id": 7}, "after": None, "op": "d", "source": {"ts_ms": OLD_MS}}},
    ]
    (folder / "cdc.jsonl").write_text("".join(json.dumps(each) + "\n" for each in changes))
    (folder / "export").mkdir()
    pq.write_table(pa.table({"id": ["dee", "eve"], "value": ["1", "2"]}), folder / "export" / "part-0.parquet")
    shutil.copytree(ROOT / "tests" / "data" / "broker_logs", folder / "broker")
    paste = shell(folder)
    return Pasted(paste, [paste(step.commands) for step in steps("README.md")])


def test_the_five_minutes_print_what_readme_shows(readme: Pasted) -> None:
    for step, printed in zip(steps("README.md"), readme.printed, strict=True):
        if step.shown is not None:
            assert comparable(printed) == comparable(step.shown), step.commands


def test_the_five_minutes_clean_something(readme: Pasted) -> None:
    assert [record["offset"] for record in map(json.loads, readme.paste("keptlog read users").splitlines())] == [
        2,
        3,
        4,
    ]
    assert readme.state() == {"ada": "ada@example.org", "cy": "cy@example.com"}


def test_the_lines_that_bring_records_in_can_be_pasted_behind_them(readme: Pasted) -> None:
    without_broker = [line for line in RECORDS if NEEDS_A_BROKER not in line]
    assert len(without_broker) == len(RECORDS) - 2
    for line in without_broker:
        readme.paste(line.replace(BROKER_LOGS, "broker"))
    state = readme.state()
    assert (state["dee"], state['{"id":8}']) == ("1", '{"id":8}')
    assert '{"id":7}' not in state
    assert "compacted" in readme.paste("keptlog topic list")


def test_what_restores_to_a_broker_restores_to_a_file_too(readme: Pasted) -> None:
    for form in ("jsonl", "parquet"):
        readme.paste(f"keptlog restore users --to {form} users-restored.{form}")


@pytest.mark.parametrize("page", PAGES)
def test_every_command_that_a_page_names_exists_with_its_options(page: str) -> None:
    runner = CliRunner()
    for words in commands(page, "keptlog"):
        shown = runner.invoke(cli, [*words, "--help"])
        assert shown.exit_code == 0, f"keptlog {' '.join(words)}\n{shown.output}"


@pytest.mark.parametrize("page", PAGES)
def test_every_make_that_a_page_names_has_its_recipe(page: str) -> None:
    for words in commands(page, "make"):
        planned = subprocess.run(["make", "-n", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        assert planned.returncode == 0, f"make {' '.join(words)}\n{planned.stderr}"


def test_a_renamed_option_would_be_noticed() -> None:
    [line] = [line for line in RECORDS if line.startswith("keptlog ingest kafka")]
    renamed = CliRunner().invoke(cli, [*words_of(line.replace("--bootstrap", "--brokers"))[1:], "--help"])
    assert renamed.exit_code != 0
    assert "--brokers" in renamed.output
