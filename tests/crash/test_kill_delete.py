"""``kill -9`` in the middle of ``topic delete``: the topic is there whole, or gone for everyone and can be finished."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from keptlog.errors import InvalidConfig, UnknownTopic
from keptlog.table.store import LogStore
from tests.crash.workload import SETTINGS, TOPIC, Countdown, batch
from tests.logs import open_store
from tests.table.purges import files_sealed, sealing_into

KILLS = 12
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.crash.workload"])
NOW_MS = 1_700_000_000_000


def make(home: Path) -> None:
    store = open_store(home)
    store.create_topic(TOPIC, 1, SETTINGS)
    for number in range(3):
        store.append(TOPIC, batch(number), f"append-{number}", NOW_MS)


def delete(home: Path, kill_at_call: int | None = None) -> int:
    """Delete the topic; killed at that function call of keptlog's tables. Gives how many calls there were."""
    store = sealing(home)
    with Countdown("keptlog/table/", kill_at_call) as countdown:
        store.delete_topic(TOPIC, NOW_MS)
    return countdown.calls


def sealing(home: Path) -> LogStore:
    """A store whose receipts are sealed into a folder beside the warehouse."""
    store = open_store(home)
    store.seal = sealing_into(home / "chain")
    return store


def files_of(home: Path) -> list[Path]:
    return [path for path in (home / "warehouse").rglob("*") if path.is_file()]


def test_a_killed_deletion_is_finished_by_the_same_call_again(tmp_path: Path, dice: Callable[[int], Random]) -> None:
    make(tmp_path / "home")
    calls = delete(tmp_path / "home")
    assert files_of(tmp_path / "home") == []
    for kill in range(KILLS):
        home = tmp_path / f"home-{kill}"
        make(home)
        whole = len(files_of(home))
        at_call = dice(kill).randrange(calls * kill // KILLS, calls * (kill + 1) // KILLS) + 1
        process = PROCESSES.Process(target=delete, args=(home, at_call))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL, f"kill {kill} did not happen"
        store = open_store(home)
        if store.topics():
            assert len(list(store.read(TOPIC))) == 60
            assert (store.being_deleted(), len(files_of(home))) == ([], whole)
        else:
            with pytest.raises(UnknownTopic):
                store.append(TOPIC, batch(0), "zombie", NOW_MS)
        if store.being_deleted():
            with pytest.raises(InvalidConfig, match=f"keptlog topic delete {TOPIC} finishes it"):
                store.create_topic(TOPIC, 1, SETTINGS)
        if store.topics() or store.being_deleted():
            sealing(home).delete_topic(TOPIC, NOW_MS)
        with pytest.raises(UnknownTopic):
            open_store(home).delete_topic(TOPIC, NOW_MS)
        told = files_sealed(home / "chain", "topic-delete")
        assert len(told) == len(set(told)) == whole - 1  # all but the metadata that goes behind the receipt
        left = files_of(home)
        assert [path.name.endswith(".metadata.json") for path in left] in ([], [True]), left
        make(home)
        assert len(list(open_store(home).read(TOPIC))) == 60
