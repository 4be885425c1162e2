"""Without an extra, what needs it says so in one line, and everything else works."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from keptlog.cli import cli
from keptlog.extras import EXTRAS

ROOT = Path(__file__).parents[2]
_COMMAND = re.compile(r"^    ([a-z-]+)  +(.*)$", re.MULTILINE)
ALL = (*EXTRAS, "dagster", "dagster_pyspark")
WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from keptlog.cli import main
main()
"""


class Terminal:
    """Runs the command in a Python that does not find some modules."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(
        self, *arguments: str, missing: Sequence[str] = ALL, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", WITHOUT.format(missing=tuple(missing)), *arguments],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT), "KEPTLOG_HOME": "home"} | environment,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "module"),
    [
        (["ingest", "kafka", "--bootstrap", "127.0.0.1:1", "--topic", "users"], "confluent_kafka"),
        (["restore", "users", "--to", "kafka", "--bootstrap", "127.0.0.1:1"], "confluent_kafka"),
        (["import", "kafka-logs", "."], "google_crc32c"),
    ],
)
def test_a_command_that_needs_the_kafka_extra_names_it(terminal: Terminal, arguments: list[str], module: str) -> None:
    said = terminal.run(*arguments, missing=[module])
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr == f"keptlog: this needs {module}: pip install 'keptlog[kafka]'\n"
    other = terminal.run(*arguments, missing=[each for each in EXTRAS if each != module])
    assert "pip install" not in other.stderr


def test_a_catalog_that_needs_the_postgres_extra_names_it(terminal: Terminal) -> None:
    uri = "postgresql+psycopg2://nobody@127.0.0.1:1/catalog"
    said = terminal.run("topic", "list", PYICEBERG_CATALOG__KEPTLOG__URI=uri)
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr.count("\n") == 1
    assert said.stderr.endswith("is not usable: this needs psycopg2: pip install 'keptlog[postgres]'\n")


def test_a_module_that_no_extra_brings_is_not_explained_away(terminal: Terminal) -> None:
    said = terminal.run("topic", "create", "users", missing=["pyiceberg"])
    assert said.returncode == 1
    assert said.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'pyiceberg'"


def test_the_help_shows_every_command_and_what_is_missing_for_some(terminal: Terminal) -> None:
    said = terminal.run("--help", COLUMNS="120")
    assert said.returncode == 0
    shown = dict(_COMMAND.findall(said.stdout.partition("Commands:")[2]))
    assert sorted(shown) == sorted(cli.list_commands(click.Context(cli)))
    assert {name for name, text in shown.items() if "pip install" in text} == {"ingest", "import", "metrics"}
    assert shown["ingest"] == "(this needs confluent_kafka: pip install 'keptlog[kafka]')"


def test_without_any_extra_a_topic_is_appended_cleaned_and_read(terminal: Terminal) -> None:
    records = [{"key": "ada", "value": text, "timestamp": 1_700_000_000_000} for text in ("1", "2")]
    (terminal.folder / "users.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records))
    for command in (
        "topic create users --config cleanup.policy=compact",
        "append users --file users.jsonl",
        "clean users",
        "verify users",
        "status",
        "restore users --to jsonl restored.jsonl",
        "purge",
    ):
        said = terminal.run(*command.split())
        assert said.returncode == 0, (command, said.stderr)
    read = terminal.run("read", "users").stdout
    assert [json.loads(line)["value"] for line in read.splitlines()] == ["2"]
    assert (terminal.folder / "restored.jsonl").read_text() == read


def test_every_extra_that_is_named_can_be_installed_and_all_has_all_of_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    assert set(EXTRAS.values()) < set(extras)
    assert extras["all"] == [f"keptlog[{','.join(sorted(set(extras) - {'all', 'dev', 'docs'}))}]"]
    assert "keptlog[all]" in extras["dev"]


@pytest.mark.parametrize("page", ["README.md", "docs/library.md"])
def test_whoever_lists_the_extras_lists_all_of_them(page: str) -> None:
    told = (ROOT / page).read_text(encoding="utf-8")
    assert [each for each in sorted(set(EXTRAS.values()) | {"dagster"}) if f"[{each}]" not in told] == []
