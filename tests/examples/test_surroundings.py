"""``make demo`` in a folder with a space in its name, twice at once, without git and without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from examples import demo
from examples.telling import demo_home
from tests.test_style import ROOT

BARE = ("Makefile", "pyproject.toml", "constraints.txt", "dagster.yaml", "scripts/bootstrap", "scripts/wheel.cfg")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What ``make`` needs of a checkout to set up a demo."""
    folder = tmp_path / "with a space"
    for name in BARE:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "dagster").mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    monkeypatch.setenv("KEPTLOG_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def bootstrapped(checkout: Path, what: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["scripts/bootstrap", what],
        cwd=checkout,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_dagster_is_prepared_in_a_folder_with_a_space(checkout: Path) -> None:
    command = checkout / ".venv" / "bin" / "dagster"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec "{Path(sys.executable).parent / "dagster"}" "$@"\n')
    command.chmod(0o755)
    (checkout / ".venv" / ".installed").touch()
    made = subprocess.run(
        ["make", ".dagster/.prepared"], cwd=checkout, capture_output=True, text=True, timeout=600, check=False
    )
    assert made.returncode == 0, made.stderr
    assert (checkout / ".dagster" / "dagster.yaml").read_text() == (ROOT / "dagster.yaml").read_text()
    assert list((checkout / ".dagster").rglob("*.db"))


def test_without_a_network_what_can_t_be_fetched_is_one_line(checkout: Path) -> None:
    nobody = {"PIP_INDEX_URL": "http://127.0.0.1:1/", "PIP_RETRIES": "1", "PIP_CONFIG_FILE": os.devnull}
    done = bootstrapped(checkout, "venv", PYTHON=sys.executable, **nobody)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith("keptlog: keptlog can't be installed: nothing answers where pip gets packages from")


@pytest.mark.usefixtures("home")
def test_without_git_it_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert demo.main([]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "demo: there is no git, and the demo tells the history of a git repository: apt-get install git"
    ]


def test_a_second_demo_in_one_home_leaves_the_first_alone(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with demo_home(demo.TOPIC, "demo") as first:
        first.store.create_topic(demo.TOPIC, 1, {})
        assert demo.main([]) == 1
        assert first.store.topics() == [demo.TOPIC]
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"demo: another demo is under way in {home}")
