"""Dagster tells homes apart by more than their paths: on two machines, or in two containers, these may be the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from keptlog.dagster.resources.log_store import LogStoreResource, _opened
from tests.orchestration.conftest import COMPACT


def which(home: Path, *topics: str) -> str:
    """As a new process has it."""
    _opened.clear()
    return LogStoreResource(home=str(home), topics=list(topics)).which()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return made(tmp_path / "home")


def made(home: Path) -> Path:
    _opened.clear()
    LogStoreResource(home=str(home)).store.create_topic("users", 1, COMPACT)
    return home


def test_a_home_is_the_same_for_every_process_and_through_a_link(home: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(home)
    assert which(home) == which(home) == which(tmp_path / "link")


def test_another_home_at_its_path_is_another(home: Path, tmp_path: Path) -> None:
    before = which(home)
    home.rename(tmp_path / "aside")
    assert which(made(home)) != before


def test_a_copy_of_it_is_another(home: Path, tmp_path: Path) -> None:
    shutil.copytree(home, tmp_path / "copy")
    assert which(tmp_path / "copy") != which(home)


def test_some_topics_of_it_are_others_than_all(home: Path) -> None:
    assert len({which(home), which(home, "users"), which(home, "orders")}) == 3
