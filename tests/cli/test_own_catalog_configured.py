"""A home's own catalog can't be configured: keptlog would take it for any other, and a copy of it for the original."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.mark.parametrize("is_copy", [False, True], ids=["the home", "a copy"])
@pytest.mark.parametrize(
    "uri",
    [
        "sqlite:///{}",
        "sqlite:////{}",
        "sqlite:///file:/{}?uri=true",
        "sqlite:///file:/%2e/{}?uri=true",
        "sqlite:///file://localhost/{}?uri=true",
        "sqlite:///file:/{}#a fragment?uri=true",
    ],
)
def test_a_home_whose_own_catalog_is_configured_is_refused_in_one_line(
    keptlog: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str, *, is_copy: bool
) -> None:
    assert keptlog("topic", "create", "users").code == 0
    if is_copy:
        home = Path(shutil.copytree(home, tmp_path / "a copy"))
    monkeypatch.chdir("/")
    monkeypatch.setenv("KEPTLOG_HOME", str(home))
    database = str(home / "catalog.db").removeprefix("/")  # relative to the working directory, or behind a slash
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", uri.format(database))
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{home}/warehouse")

    for words in ("topic list", "purge", "topic create orders"):
        told = keptlog(*words.split())
        assert told.code == 2
        [line] = told.err.splitlines()
        assert f"its database {home}/catalog.db is the own catalog of a home: take it out of the configuration" in line
        assert "KEPTLOG_HOME=" in line
