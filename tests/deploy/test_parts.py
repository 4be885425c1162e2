"""What deploy/ starts cleans by itself, and goes on when any part of it is killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from examples.installed import NotInstalled
from examples.lake.postgres import Postgres, postgres
from keptlog.home import open_home, wall_clock_ms
from keptlog.log.record import NewRecord
from tests.deploy.parts import PARTS, Elsewhere, Part, deployed
from tests.processes import children, descendants, listening

HOUR_MS = 3_600_000
_CLEANED_SECONDS = 600


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    pytest.importorskip("dagster_postgres")
    try:
        running = postgres()
        with running as started:
            yield started
    except NotInstalled as error:
        pytest.skip(f"deploy/ was not tried: {error}")


@pytest.fixture(scope="module")
def parts(database: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Elsewhere, dict[str, Part]]]:
    with deployed(tmp_path_factory.mktemp("deployed"), database) as started:
        yield started


def make_due(elsewhere: Elsewhere, topic: str) -> None:
    """A new topic with one log, which is due at once."""
    home = open_home(elsewhere.home, {})
    home.create_topic(topic, 1, {"cleanup.policy": "compact", "segment.ms": str(HOUR_MS)})
    then_ms = wall_clock_ms() - 2 * HOUR_MS
    home.append(topic, [NewRecord(b"key", b"%d" % number, then_ms, 0) for number in range(3)])


def wait_until_cleaned(elsewhere: Elsewhere, parts: dict[str, Part], topics: set[str]) -> None:
    """Nobody asks for it but the sensors."""
    deadline = time.monotonic() + _CLEANED_SECONDS
    home = open_home(elsewhere.home, {})
    while waiting := {topic for topic in topics if home.store.logs(topic)[0].checkpoint is None}:
        if time.monotonic() > deadline:
            said = "\n".join(f"--- {name}\n{part.said()}" for name, part in parts.items())
            pytest.fail(f"not cleaned after {_CLEANED_SECONDS} s: {waiting}\n{said}")
        time.sleep(2)
    for topic in topics:
        assert [record.value for _, record in home.read(topic)] == [b"2"]


def test_after_kill_9_of_each_part_in_turn_cleaning_goes_on_without_a_hand(
    parts: tuple[Elsewhere, dict[str, Part]],
) -> None:
    elsewhere, running = parts
    for name in PARTS:
        make_due(elsewhere, f"before-{name}")
        running[name].kill()
        running[name].wait_until_healthy()
    make_due(elsewhere, "afterwards")

    wait_until_cleaned(elsewhere, running, {"afterwards", *(f"before-{name}" for name in PARTS)})

    assert [part.starts for part in running.values()] == [2] * len(PARTS)


def test_nothing_but_the_ui_listens_outside_of_loopback(parts: tuple[Elsewhere, dict[str, Part]]) -> None:
    _, running = parts
    for name in ("spark", "code", "daemon"):
        process = running[name].process
        assert process
        pids = {process.pid, *(each.pid for each in descendants(process.pid))}
        assert {address for pid in pids for address in listening(pid)} <= {"127.0.0.1", "::1"}, name


def test_the_part_code_is_not_healthy_once_the_process_that_has_loaded_the_code_is_gone(
    parts: tuple[Elsewhere, dict[str, Part]],
) -> None:
    code = parts[1]["code"]
    assert code.process
    # After a reload there are two for a while: the older one finishes what it is at.
    loaded = [each for each in children(code.process.pid) if "api grpc" in each.command]
    assert loaded
    for each in loaded:
        os.kill(each.pid, signal.SIGKILL)

    assert code.checked().returncode

    code.kill()
    code.wait_until_healthy()
