"""What keptlog itself has written among the receipts of a topic is no reason to look at it: requests end beside it."""

from __future__ import annotations

from pathlib import Path

from keptlog.home import new_id
from keptlog.passes.readers import Readers
from tests.erasure.world import KEY, OTHER, SECOND_MS, World


def test_registers_histories_landed_changes_and_positions_of_readers_keep_no_request_open(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.create()
    readers = Readers(world.store, new_id)
    readers.add("users", "app", now_ms=world.now_ms)
    world.append((KEY, b"here"), (OTHER, b"1"))
    world.ask()
    for _ in readers.read("users", "app"):
        pass
    assert world.to_deleted().erasure.state == "deleted"
    folders = {path.relative_to(tmp_path).parts[5] for path in tmp_path.rglob("metadata/receipts/*/**/*.json")}
    assert folders == {"erasures", "history", "readers", "runs"}
    world.later(SECOND_MS)
    assert world.verified().erasure.state == "verified"
