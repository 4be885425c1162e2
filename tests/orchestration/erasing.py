"""Erasures as tests ask for them in Dagster."""

from __future__ import annotations

import time
from typing import Any

import dagster as dg

from keptlog.passes.erasures.erasure_request import ErasureRequest
from tests.erasure.world import World as ErasureWorld
from tests.orchestration.conftest import HOUR_MS, World

KEY = "user-7@example.org"
SETTINGS = {
    "max_compaction_lag_ms": str(HOUR_MS),
    "delete_retention_ms": str(HOUR_MS),
    "file_delete_delay_ms": "0",
    "min_cleanable_dirty_ratio": "1",
}


def topic_with_the_key(world: World) -> str:
    """A topic with a record of the key, of now by the wall clock."""
    world.now_ms = time.time_ns() // 1_000_000
    world.topic("users", 1, **SETTINGS)
    world.append("users", (KEY, "1"), ("other", "1"), age_ms=0)
    return "users"


def hash_of(world: World, key: str = KEY) -> str:
    return world.log_store.eraser().hash_of(key.encode())


def erase_config(world: World, *topics: str, **more: Any) -> dict[str, Any]:
    """The run configuration of the job ``erase``."""
    config = {"topics": list(topics), "key_hashes": [hash_of(world)], **more}
    return {"ops": {"ask_for_erasure": {"config": config}}}


def run(world: World, job: str, config: dict[str, Any]) -> dg.ExecuteInProcessResult:
    return world.run_job(job, dg.RunRequest(run_config=config))


def states(world: World) -> dict[str, str]:
    """By request, how far it is."""
    found = world.log_store.eraser().list(now_ms=world.now_ms)
    assert dict(found.failed) == {}
    return {row.id: row.erasure.state.value for row in found.rows}


def ask(world: World, *topics: str, by_ms: int | None = None, request_id: str = "r1", key: str = KEY) -> None:
    """Ask for an erasure of a key, with a deadline so long from now."""
    deadline_ms = None if by_ms is None else world.now_ms + by_ms
    request = ErasureRequest(request_id, topics or ("users",), (key.encode(),), (), deadline_ms)
    eraser = world.log_store.eraser()
    done = eraser.request(eraser.propose(request, now_ms=world.now_ms), now_ms=world.now_ms)
    assert dict(done.failed) == {}


def passes(world: World) -> ErasureWorld:
    """Cleans and purges the same home, as a schedule elsewhere would; without Spark."""
    return ErasureWorld(world.path, world.now_ms)


def need(world: World) -> str:
    """What the erasures of users wait for."""
    return world.store.observe("users").erasures.needs[0].need


def asked_for(request: dg.RunRequest) -> list[str]:
    """The logs or topics that a requested run is to work on."""
    config: Any = request.run_config
    (op,) = config["ops"].values()
    return list(op["config"].get("logs") or op["config"]["topics"])


def due(world: World) -> None:
    """An erasure that needs a clean now."""
    ask(world, by_ms=4 * HOUR_MS)
    world.now_ms += 2 * HOUR_MS


def ask_by_hash(world: World, key: str, request_id: str, *, by_ms: int) -> None:
    """As the job ``erase`` does: of a key that nobody has, there is no tombstone."""
    hashes = (world.log_store.eraser().hash_of(key.encode()),)
    eraser, request = world.log_store.eraser(), ErasureRequest(request_id, ("users",), (), hashes, world.now_ms + by_ms)
    done = eraser.request(eraser.propose(request, now_ms=world.now_ms), now_ms=world.now_ms)
    assert dict(done.failed) == {}
