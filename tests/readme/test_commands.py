"""What README says can be typed can be typed: its commands are run as they stand there, in one home, in their order.

The test makes the files that they name. Where a broker would be needed, and for the commands of the other pages, it is
seen to that the command and its options exist.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from keptlog.cli import cli
from tests.readme.page import ROOT, commands, lines, words_of

PAGES = ["README.md", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").glob("*.md")))]
BY_HAND = lines("README.md", "Try it")
RECORDS = lines("README.md", "Records in, state out")
STAYS = "keptlog spark-server"
"""What does not end by itself: tests/spark/test_server.py starts it."""
NEEDS_A_BROKER = "--bootstrap"
BROKER_LOGS = "/var/lib/kafka/data"
OLD_MS = 1_700_000_000_000


class Shell:
    """A folder in which lines are pasted into bash; ``keptlog`` is the command installed beside this Python."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        own = {name: text for name, text in os.environ.items() if not name.startswith("KEPTLOG_")}
        path = os.pathsep.join([str(Path(sys.executable).parent), own["PATH"]])
        self.environment = own | {"PATH": path, "PYTHONPATH": str(ROOT), "KEPTLOG_SPARK_MASTER": "local[2]"}

    def paste(self, line: str) -> str:
        """What it prints, if it ends well."""
        done = subprocess.run(
            ["bash", "-c", line], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def state(self) -> dict[str, str]:
        """The latest value of each key."""
        records = [json.loads(line) for line in self.paste("keptlog read users --latest").splitlines()]
        return {record["key"]: record["value"] for record in records}


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Where the files lie that README's lines name. The records of all are old enough to be cleaned."""
    folder = tmp_path_factory.mktemp("readme")
    values = [{"key": f"user-{n % 40}", "value": str(n), "partition": n % 2, "timestamp": OLD_MS} for n in range(200)]
    values += [{"key": "user-0", "value": None, "partition": 0, "timestamp": OLD_MS}]
    (folder / "users.jsonl").write_text("".join(json.dumps(each) + "\n" for each in values))
    changes = [
        {"key": {"id": 7}, "value": {"before": None, "after": {"id": 7}, "op": "c", "source": {"ts_ms": OLD_MS}}},
        {"key": {"id": 8}, "value": {"before": None, "after": {"id": 8}, "op": "c", "source": {"ts_ms": OLD_MS}}},
        {"key": {"id": 7}, "value": {"before": {"id": 7}, "after": None, "op": "d", "source": {"ts_ms": OLD_MS}}},
    ]
    (folder / "cdc.jsonl").write_text("".join(json.dumps(each) + "\n" for each in changes))
    (folder / "export").mkdir()
    pq.write_table(pa.table({"id": ["ada", "bob"], "value": ["1", "2"]}), folder / "export" / "part-0.parquet")
    shutil.copytree(ROOT / "tests" / "data" / "broker_logs", folder / "broker")
    return Shell(folder)


@pytest.fixture(scope="module")
def by_hand(shell: Shell) -> dict[str, str]:
    """What each of the lines by hand prints, pasted one after the other."""
    return {line: shell.paste(line) for line in BY_HAND if not line.startswith(STAYS)}


def test_the_lines_by_hand_can_be_pasted_one_after_the_other(shell: Shell, by_hand: dict[str, str]) -> None:
    [cleaned] = [out for line, out in by_hand.items() if line.startswith("keptlog clean ")]
    assert "users-0" in cleaned
    assert "users-1" in cleaned
    assert shell.state() == {f"user-{number % 40}": str(number) for number in range(161, 200)}


@pytest.mark.usefixtures("by_hand")
def test_the_lines_that_bring_records_in_can_be_pasted_behind_them(shell: Shell) -> None:
    without_broker = [line for line in RECORDS if NEEDS_A_BROKER not in line]
    assert len(without_broker) == len(RECORDS) - 2
    for line in without_broker:
        shell.paste(line.replace(BROKER_LOGS, "broker"))
    state = shell.state()
    assert (state["ada"], state['{"id":8}']) == ("1", '{"id":8}')
    assert '{"id":7}' not in state
    assert "compacted" in shell.paste("keptlog topic list")


@pytest.mark.usefixtures("by_hand")
def test_what_restores_to_a_broker_restores_to_a_file_too(shell: Shell) -> None:
    for form in ("jsonl", "parquet"):
        shell.paste(f"keptlog restore users --to {form} users-restored.{form}")


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
