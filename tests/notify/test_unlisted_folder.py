"""A folder ``notify`` that this user may not list: when the sensors ticked is not known, and all else is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from keptlog.notify.ticks import leave_tick
from tests.notify.conftest import Scene, told
from tests.notify.servers import HttpInbox

NOT_KNOWN = "can't be read (Permission denied): whether sensors tick is not known"


@pytest.fixture
def unlisted(scene: Scene) -> Scene:
    """Root may list every folder, so the refusal is ours."""
    scene.topic()
    leave_tick(scene.home, "crm_", scene.now_ms, 30_000)
    list_folder = Path.iterdir

    def iterdir(path: Path) -> Iterator[Path]:
        if path.name == "notify":
            raise PermissionError(13, "Permission denied", str(path))
        return list_folder(path)

    scene.environment.setattr(Path, "iterdir", iterdir)
    return scene


def test_metrics_tell_all_but_the_ticks(unlisted: Scene) -> None:
    told = unlisted.keptlog("metrics", "write", "-")
    assert (told.code, told.err.count("\n")) == (0, 1)
    assert f"{unlisted.home}/notify {NOT_KNOWN}" in told.err
    assert 'kafka_log_log_logendoffset{partition="0",topic="users"} 2.0' in told.out
    assert "keptlog_sensors_last_tick_timestamp_seconds{" not in told.out


def test_notify_tells_of_all_else(unlisted: Scene, posts: HttpInbox) -> None:
    unlisted.break_log()
    outcome = unlisted.notify()
    assert (outcome.code, outcome.err.count(NOT_KNOWN)) == (0, 1)
    assert told(posts) == [("began", "uncleanable", "users-0")]
