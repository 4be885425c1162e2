"""The site as ``make docs`` makes it: every page is in its contents, no link is dead, its reference is the code's."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from keptlog.cli import cli
from keptlog.log.broker import BROKER_SETTINGS
from keptlog.log.config import SETTINGS
from tests.readme.page import ROOT
from tests.test_style import tracked

FOREIGN = re.compile(r"""(?:src|<link[^>]*href)=["'](?:https?:)?//[^"']+""")
VARIABLE = re.compile(r"(?<![A-Z_])KEPTLOG_(?!_)[A-Z]+(?:_[A-Z]+)*_?")


def made(root: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scripts.site", str(root), str(out)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "docs"
    done = made(ROOT, out)
    assert done.returncode == 0, done.stderr
    return out


def test_every_page_is_made_and_nothing_is_fetched_by_who_reads_it(site: Path) -> None:
    pages = [path.relative_to(ROOT).with_suffix(".html") for path in tracked("README.md", "docs/*.md", "docs/**/*.md")]
    assert [str(page) for page in pages if not (site / page).is_file()] == []
    assert [found for page in pages for found in FOREIGN.findall((site / page).read_text(encoding="utf-8"))] == []


def test_the_reference_has_every_command_and_every_setting(site: Path) -> None:
    commands = (site / "docs" / "commands.html").read_text(encoding="utf-8")
    assert [name for name in cli.list_commands(None) if f"keptlog {name}" not in commands] == []  # type: ignore[arg-type]
    assert "--bootstrap" in commands
    assert "--log-level" in commands
    settings = (site / "docs" / "settings.html").read_text(encoding="utf-8")
    assert [each.name for each in (*SETTINGS, *BROKER_SETTINGS) if each.name not in settings] == []


def test_the_page_of_settings_has_every_variable() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    families = tuple(re.findall(r"(KEPTLOG_[A-Z]+_)…", page))
    code = [
        path.read_text(encoding="utf-8") for path in tracked("keptlog/*.py", "resources/*.py", "orchestration/*.py")
    ]
    read = {name for text in code for name in VARIABLE.findall(text)}
    assert {name for name in read if name not in page and not name.startswith(families)} == set()


def test_dead_links_end_it_and_each_is_named(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    dead = [
        "[gone](page-gone.md)",
        "[gone](other.md#part-gone)",
        "![gone](picture-gone.png)",
        "[gone](../code_gone.py)",
    ]
    (docs / "index.md").write_text("# Pages\n\n```{toctree}\nother\n```\n\n" + "\n\n".join(dead))
    (docs / "other.md").write_text("# Other\n")
    (docs / "forgotten.md").write_text("# In no contents\n")
    done = made(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    named = ("page-gone", "part-gone", "picture-gone", "code_gone", "forgotten.md")
    assert [name for name in named if name not in done.stderr] == []
