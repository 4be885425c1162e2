"""An erasure is verified once its receipt is sealed, and not before; and it has one, whoever is killed on the way."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from keptlog.cli.receipt_text import lines_of
from keptlog.engine.engine import Engine
from keptlog.engine.search_tasks import KeySearch
from keptlog.errors import SparkUnavailable, StorageUnavailable
from keptlog.home import open_home
from keptlog.log.erasures.erasure import ErasureState
from keptlog.log.erasures.receipt_id import receipt_id
from keptlog.log.search import FileFindings
from keptlog.receipts.receipt import Draft
from keptlog.table.removal.drafts import Seal
from tests.erasure.world import DAY_MS, KEY, OTHER, SECOND_MS, VALUE, World
from tests.in_process import in_process_engine
from tests.receipts.chains import KEY as KEY_OF_RECEIPTS
from tests.table.receipt_chains import chain_at

PROCESSES = multiprocessing.get_context("forkserver")


@pytest.fixture
def deleted(world: World) -> World:
    """A topic whose request waits for nothing but its verification."""
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask(reason="ticket 4711")
    assert world.to_deleted().erasure.state == "deleted"
    return world


def verify(world: World, seal: Seal | None) -> tuple[str, tuple[str, ...]]:
    eraser = world.eraser
    eraser.store.seal = seal
    [row] = eraser.verify(now_ms=world.now_ms).rows
    return row.erasure.state, row.blocked


def test_a_receipt_says_what_was_asked_what_went_when_and_what_was_looked_through(deleted: World) -> None:
    asked = deleted.erasure()
    deleted.later(SECOND_MS)
    row = deleted.verified()
    [receipt] = deleted.receipts
    content = receipt.content
    topic = deleted.store.describe_topic("users")
    assert receipt.id == receipt_id(topic.id, asked)
    assert (receipt.topics, receipt.at_ms) == (("users",), deleted.now_ms)
    assert (content["request"], content["reason"], content["way"]) == ("r1", "ticket 4711", "tombstone")
    assert (content["table_uuid"], content["key_hashes"]) == (topic.id, [deleted.hasher.hash(KEY).hex()])
    assert content["secret_fingerprint"] == deleted.hasher.fingerprint
    assert content["offsets"] == [
        {
            "partition": 0,
            "key_hash": None,
            "end_offset": 3,
            "first_tombstone_offset": 2,
            "last_tombstone_offset": 2,
        }
    ]
    assert [(each["state"], each["at_ms"]) for each in content["states"]] == [
        (each.state, each.at_ms) for each in row.erasure.reached
    ]
    assert (content["requested_ms"], content["deadline_ms"]) == (asked.requested_ms, asked.deadline_ms)
    assert content["is_in_time"] is True
    assert content["snapshots"]
    live = deleted.store.logs("users")[0].segments[0].path
    searched = {each["path"]: each for each in content["searched_files"]}
    assert set(searched) >= {live}
    assert searched[live]["bytes"] == Path(live.removeprefix("file://")).stat().st_size
    assert (searched[live]["kind"], bool(searched[live]["crc32"])) == ("segment", True)
    assert content["not_covered"]


def test_a_receipt_reads_well(deleted: World) -> None:
    deleted.verified()
    [receipt] = deleted.receipts
    text = "\n".join(lines_of(receipt, is_checked=True))
    assert text.startswith(f"receipt {receipt.sequence}: erasure of topic users\n")
    assert ": none has a record of these keys that was to go" in text
    assert "  gone      all of its keys in partition 0 below offset 3, tombstones 2 to 2 included\n" in text
    assert "\n  requested     20" in text
    assert "reason: ticket 4711" in text


def test_a_receipt_of_no_key_is_told_as_no_proof(deleted: World) -> None:
    """An older keptlog has sealed such ones."""
    deleted.verified()
    [receipt] = deleted.receipts
    text = "\n".join(lines_of(replace(receipt, content={**receipt.content, "key_hashes": []}), is_checked=True))
    assert "FOR NO KEY: the erasure was made for none, so this proves nothing" in text
    assert "none has a record" not in text


def test_a_hash_that_its_text_names_can_be_asked_for_anew(world: World) -> None:
    world.create()
    world.ingest({0: (KEY, VALUE)}, 1)
    world.ask()
    world.ingest({1: (KEY, None)}, 2)
    world.to_deleted()
    world.verified()
    [receipt] = world.receipts
    assert f"all of key {world.hasher.told(KEY)} in partition 0" in "\n".join(lines_of(receipt, is_checked=True))


def test_a_request_that_was_too_late_has_a_receipt_that_says_so(world: World) -> None:
    world.create()
    world.append((KEY, VALUE))
    world.ask(deadline_ms=world.now_ms + SECOND_MS)
    world.to_deleted()
    world.verified()
    assert [each.content["is_in_time"] for each in world.receipts] == [False]


def test_all_requests_of_a_search_have_a_receipt_each(world: World) -> None:
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask()
    world.ask(OTHER, id="r2")
    world.to_deleted()
    world.verified()
    assert [each.content["request"] for each in world.receipts] == ["r1", "r2"]


def test_an_id_that_is_used_again_later_gets_a_receipt_of_its_own(world: World) -> None:
    world.create()
    first = world.ask().erasures["users"]
    ids = {receipt_id("x", first), receipt_id("x", replace(first, requested_ms=first.requested_ms + 1))}
    assert len(ids) == 2


@pytest.mark.parametrize("length", [1, 40, 41, 100])
def test_the_id_of_a_request_may_be_as_long_as_ids_may_be(world: World, length: int) -> None:
    world.create()
    world.ask(id="r" * length)
    topic_id = world.store.describe_topic("users").id
    Draft(receipt_id(topic_id, world.erasure(erasure_id="r" * length)), "erasure", 0, {})


def test_where_no_chain_is_open_nothing_is_verified(deleted: World) -> None:
    state, blocked = verify(deleted, None)
    assert state == "deleted"
    assert blocked == (
        "no record of its keys is left, but its receipt is not sealed (no chain of receipts is open): verify again",
    )
    assert deleted.erasure().state == "deleted"


def test_a_chain_that_is_out_of_reach_keeps_a_request_open_and_is_named(deleted: World) -> None:
    def out_of_reach(_: Sequence[Draft]) -> None:
        raise StorageUnavailable("the chain is elsewhere")

    state, blocked = verify(deleted, out_of_reach)
    assert state == "deleted"
    assert "its receipt is not sealed (StorageUnavailable: the chain is elsewhere)" in blocked[0]
    assert deleted.verified().erasure.state == "verified"
    assert len(deleted.receipts) == 1


@pytest.mark.parametrize("patterns", [("*",), ("us*",)])
def test_who_can_not_sign_is_told_before_any_file_is_looked_through(
    deleted: World, monkeypatch: pytest.MonkeyPatch, patterns: tuple[str, ...]
) -> None:
    """Each verification looked through all files, and only then said: verify again, which never helps."""
    searches, search = list[str](), Engine.search

    def counted(engine: Engine, wanted: KeySearch, run_id: str) -> list[FileFindings]:
        searches.append(run_id)
        return search(engine, wanted, run_id)

    monkeypatch.setattr(Engine, "search", counted)
    key = deleted.home / "receipts.key"
    key.touch(0o600)
    home = open_home(deleted.home).only(patterns)
    eraser = replace(home.eraser, engine=in_process_engine(home.store.files))
    found = eraser.verify(now_ms=deleted.now_ms)
    assert f"signing key {key} is not usable" in str(found.failed["users"])
    assert (searches, [row.erasure.state for row in found.rows]) == ([], ["deleted"])
    key.write_bytes(KEY_OF_RECEIPTS.to_pem())
    [row] = eraser.verify(now_ms=deleted.now_ms).rows
    assert (row.erasure.state, bool(searches)) == ("verified", True)


def test_a_verification_that_proves_nothing_leaves_no_key_behind(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its public half was taken for that of a chain which somebody has dropped."""

    def down(*_: object) -> list[FileFindings]:
        raise SparkUnavailable("Spark is down")

    world.create()
    world.ingest({0: (OTHER, VALUE)}, 1)
    world.ask()
    for _ in range(2):  # there is nothing to delete of which a receipt would tell
        world.later(DAY_MS)
        world.purge()
    assert world.row().erasure.state == "deleted"
    monkeypatch.setattr(Engine, "search", down)
    home = open_home(world.home)
    found = replace(home.eraser, engine=in_process_engine(home.store.files)).verify(now_ms=world.now_ms)
    assert {topic: type(error) for topic, error in found.failed.items()} == {"users": SparkUnavailable}
    assert list(world.home.glob("receipts*")) == []
    assert home.receipts.verify().is_sound


def verify_and_die(home: Path, now_ms: int) -> None:
    """Killed when the receipt is sealed, and the register says nothing of it yet."""
    world = World(home, now_ms)

    def seal_and_die(drafts: Sequence[Draft]) -> None:
        chain_at(home).append(drafts)
        os.kill(os.getpid(), signal.SIGKILL)

    verify(world, seal_and_die)


def test_whoever_is_killed_between_receipt_and_register_verifies_again_and_there_is_one_receipt(deleted: World) -> None:
    process = PROCESSES.Process(target=verify_and_die, args=(deleted.home, deleted.now_ms))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    [sealed] = deleted.receipts
    assert deleted.erasure().state == "deleted"
    deleted.later(SECOND_MS)
    row = deleted.verified()
    assert [each.state for each in row.erasure.reached].count(ErasureState.VERIFIED) == 1
    assert deleted.receipts == [sealed]
