"""Erasures as tests ask for them in Dagster."""

from __future__ import annotations

from typing import Any

import dagster as dg

from tests.orchestration.conftest import HOUR_MS, World

KEY = "user-7@example.org"
SETTINGS = {
    "max_compaction_lag_ms": str(HOUR_MS),
    "delete_retention_ms": str(HOUR_MS),
    "file_delete_delay_ms": "0",
    "min_cleanable_dirty_ratio": "1",
}


def hash_of(world: World, key: str = KEY) -> str:
    return world.log_store.eraser().hash_of(key.encode())


def erase_config(world: World, *topics: str, key: str = KEY, **more: Any) -> dict[str, Any]:
    """The run configuration of the job ``erase``."""
    config = {"topics": list(topics), "key_hashes": [hash_of(world, key)], **more}
    return {"ops": {"ask_for_erasure": {"config": config}}}


def run(world: World, job: str, config: dict[str, Any]) -> dg.ExecuteInProcessResult:
    return world.run_job(job, dg.RunRequest(run_config=config))


def states(world: World) -> dict[str, str]:
    """By request, how far it is."""
    found = world.log_store.eraser().list(now_ms=world.now_ms)
    assert dict(found.failed) == {}
    return {row.id: row.erasure.state.value for row in found.rows}
