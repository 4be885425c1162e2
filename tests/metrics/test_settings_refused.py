"""Broker settings that can't be accepted: no log can be cleaned, and the metrics say so, whenever the line came."""

from __future__ import annotations

import pytest
from prometheus_client import generate_latest

from keptlog.cli.metrics import Shown, _Looks, _Observing
from tests.notify.conftest import Scene

CATALOG = 'keptlog_condition{condition="catalog",level="broken",subject="all topics",topic=""} 1.0'


def wrong(scene: Scene) -> None:
    (scene.home / "server.properties").write_text("log.cleaner.threads=zero\n")


def test_a_file_that_is_written_says_that_no_log_is_looked_after(scene: Scene) -> None:
    scene.topic()
    file = scene.home / "w.prom"
    assert scene.keptlog("metrics", "write", str(file)).code == 0
    wrong(scene)
    outcome = scene.keptlog("metrics", "write", str(file))
    assert (outcome.code, outcome.err.count("\n")) == (1, 1)
    assert "log.cleaner.threads" in outcome.err
    written = file.read_text()
    assert "keptlog_up 0.0" in written
    assert CATALOG in written


def test_who_looks_again_and_again_tells_of_them_and_when_they_are_mended(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    scene.topic()
    looks = _Looks(_Observing().look, 100)

    def shown() -> str:
        return generate_latest(Shown(looks.families()).registry).decode()

    assert "keptlog_up 1.0" in shown()
    wrong(scene)
    broken = shown()
    assert "keptlog_up 0.0" in broken
    assert CATALOG in broken
    assert "log.cleaner.threads" in capsys.readouterr().err
    (scene.home / "server.properties").write_text("log.cleaner.enable=false\n")
    mended = shown()
    assert "keptlog_up 1.0" in mended
    assert CATALOG not in mended
    assert "keptlog_cleaner_enabled 0.0" in mended


def test_who_begins_with_them_tells_of_them_too(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """It would end and be started again for ever, and nobody would tell."""
    scene.topic()
    wrong(scene)
    shown = Shown(_Looks(_Observing().look, 100).families())
    assert not shown.is_up
    assert "log.cleaner.threads" in capsys.readouterr().err
