"""An erasure of no key is never asked for. One that is stored is never proved: who looks for nothing finds nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from keptlog.errors import InvalidConfig
from keptlog.log.erasures.erasure import Erasure, ErasureBound, ErasureState, ReachedState
from keptlog.passes.erasures.ended_erasures import only_ended
from keptlog.passes.erasures.erasure_request import OF_NO_KEY, ErasureRequest, ErasureResult
from keptlog.passes.readers import Readers
from keptlog.table.changes.erasures import RegisterChange
from keptlog.table.metadata.state import read_open_erasures
from tests.cli.conftest import Run, home, keptlog, lines
from tests.erasure.world import DAY_MS, KEY, OTHER, VALUE, World, new_id
from tests.table.foreign import set_properties

__all__ = ["home", "keptlog", "lines"]


@pytest.fixture
def filled(world: World) -> World:
    """A topic with both keys."""
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    return world


def asked(world: World, request: ErasureRequest) -> ErasureResult:
    eraser = world.eraser
    return eraser.request(eraser.propose(request, now_ms=world.now_ms), now_ms=world.now_ms)


def stored_without_key(world: World, *states: ErasureState, deadline_ms: int | None = None) -> None:
    """As an older keptlog has left it."""
    reached = tuple(ReachedState(each.value, world.now_ms) for each in (ErasureState.REQUESTED, *states))
    at_ms, fingerprint, bounds = world.now_ms, world.hasher.fingerprint, (ErasureBound(0, 2, 2),)
    erasure = Erasure("r1", "tombstone", at_ms, deadline_ms, "", fingerprint, (), bounds=bounds, reached=reached)
    store = world.store
    topic = store.describe_topic("users")
    RegisterChange(topic, store.committer, store.files, new_id, world.now_ms).request(erasure, None)


@pytest.mark.parametrize("several", [iter, list, lambda keys: map(bytes, keys), lambda keys: (key for key in keys)])
def test_keys_are_erased_however_they_are_given(filled: World, several: Callable[[Sequence[bytes]], Any]) -> None:
    """An iterator was used up by the check, and an erasure of no key was stored."""
    result = asked(filled, ErasureRequest("r1", iter(["users"]), several([KEY, OTHER])))  # type: ignore[arg-type]
    assert (sorted(result.erasures), dict(result.failed)) == (["users"], {})
    assert len(filled.erasure().key_hashes) == 2
    assert [(key, value) for _, key, value in filled.records()][2:] == [(KEY, None), (OTHER, None)]


def test_hashes_of_an_iterator_are_erased(filled: World) -> None:
    told = [filled.eraser.hash_of(KEY)]
    asked(filled, ErasureRequest("r1", ["users"], key_hashes=iter(told)))  # type: ignore[arg-type]
    assert filled.erasure().key_hashes == (filled.hasher.hash(KEY).hex(),)


def test_a_list_that_is_changed_after_the_proposal_changes_no_request(filled: World) -> None:
    keys, topics = [KEY], ["users"]
    eraser = filled.eraser
    proposal = eraser.propose(ErasureRequest("r1", topics, keys), now_ms=filled.now_ms)
    keys[:] = [OTHER]
    topics.clear()
    eraser.request(proposal, now_ms=filled.now_ms)
    assert filled.erasure().key_hashes == (filled.hasher.hash(KEY).hex(),)


@pytest.mark.parametrize("keys", [(), iter(())])
def test_a_request_of_no_key_is_refused(filled: World, keys: Any) -> None:
    with pytest.raises(InvalidConfig, match="there is no key to erase: give one"):
        asked(filled, ErasureRequest("r1", ["users"], keys))
    assert filled.register_files == []


def test_a_proposal_that_has_lost_its_keys_is_not_asked_for(filled: World) -> None:
    eraser = filled.eraser
    proposal = eraser.propose(ErasureRequest("r1", ["users"], [KEY]), now_ms=filled.now_ms)
    without = replace(proposal, request=replace(proposal.request, keys=()))
    result = eraser.request(without, now_ms=filled.now_ms)
    assert (result.erasures, str(result.failed["users"])) == ({}, "there is no key to erase: give one")
    assert filled.register_files == []


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("ada", "it is of type str; give a list, each entry of type bytes"),
        (b"ada", "it is of type bytes; give a list, each entry of type bytes"),
        (5, "it is of type int; give a list, each entry of type bytes"),
        (None, "it is of type NoneType; give a list, each entry of type bytes"),
        ([b"k", "ada"], "entry 2 is of type str; give it as bytes"),
        ([None], "entry 1 is of type NoneType; give it as bytes"),
    ],
)
def test_keys_of_another_type_are_refused_and_not_repeated(keys: Any, told: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        ErasureRequest("r1", ["users"], keys)
    assert str(refused.value) == f"the keys of an erasure: {told}"


@pytest.mark.parametrize("topics", ["ab", None, [None], [b"ab"], [["ab"]]])
def test_topics_that_are_no_list_of_names_are_refused(topics: Any) -> None:
    """Of "ab" the topics a and b were meant, which nobody has named."""
    with pytest.raises(InvalidConfig, match=r"^the topics of an erasure: .*str"):
        ErasureRequest("r1", topics, [KEY])


def test_one_that_is_stored_is_told_and_never_verified(filled: World) -> None:
    stored_without_key(filled, ErasureState.TOMBSTONED)
    assert filled.row().blocked == (OF_NO_KEY,)
    filled.bring_on()
    row = filled.verified()
    assert (row.erasure.state, row.blocked) == (ErasureState.TOMBSTONED, (OF_NO_KEY,)), "nothing brings it on"
    assert row.next_told(filled.now_ms) is None
    assert filled.receipts == []
    assert any(key == KEY for _, key, _ in filled.records())


def test_one_that_is_stored_keeps_no_other_from_being_verified(filled: World) -> None:
    stored_without_key(filled, ErasureState.TOMBSTONED)
    filled.ask(KEY, id="r2")
    filled.bring_on()
    rows = {row.id: row for row in filled.eraser.verify(now_ms=filled.now_ms).rows}
    assert (rows["r1"].blocked, rows["r2"].erasure.state) == ((OF_NO_KEY,), ErasureState.VERIFIED)
    assert [each.content["request"] for each in filled.receipts] == ["r2"]


def test_one_that_an_older_keptlog_has_verified_is_told_as_no_proof(filled: World) -> None:
    stored_without_key(filled, ErasureState.TOMBSTONED, ErasureState.VERIFIED)
    looked = filled.row()
    assert (looked.erasure.state, looked.blocked) == (ErasureState.VERIFIED, (OF_NO_KEY,))
    ended = only_ended(filled.store)  # type: ignore[arg-type]
    assert ended is not None
    assert [row.blocked for row in ended.rows] == [(OF_NO_KEY,)]


def counted_as_open(world: World) -> None:
    """As an older keptlog has counted it."""
    summary: dict[str, Any] = {
        "count": 1,
        "earliest_deadline_ms": world.now_ms,
        "next_ms": None,
        "needs": [],
        "deadlines": [],
    }
    set_properties(world.home, {"log.erasures.open": json.dumps(summary)}, "users")


def test_one_that_is_stored_is_not_open_and_misses_no_deadline(filled: World) -> None:
    """It was overdue for ever, and no command ended it."""
    stored_without_key(filled, ErasureState.TOMBSTONED, deadline_ms=filled.now_ms + DAY_MS)
    counted_as_open(filled)
    filled.later(60 * DAY_MS)
    assert filled.eraser.advance(now_ms=filled.now_ms).rows == ()
    summary = read_open_erasures("users", filled.store.load_table("users").properties)
    assert (summary.count, summary.earliest_deadline_ms, summary.needs, summary.ended_count) == (0, None, (), 1)
    commits = filled.commits()
    found = filled.eraser.list(now_ms=filled.now_ms)
    assert (found.overdue(filled.now_ms), filled.commits()) == ([], commits)
    assert [(row.id, row.erasure.is_open, row.blocked) for row in found.rows] == [("r1", False, (OF_NO_KEY,))]
    assert filled.receipts == []


def test_one_that_is_stored_does_not_end_what_readers_hold(filled: World) -> None:
    stored_without_key(filled, ErasureState.TOMBSTONED, deadline_ms=filled.now_ms + DAY_MS)
    counted_as_open(filled)
    filled.later(60 * DAY_MS)
    Readers(filled.store, new_id).add("users", "search", now_ms=filled.now_ms)
    filled.eraser.advance(now_ms=filled.now_ms)
    (log,) = filled.store.logs("users")
    assert log.holds.erasure_end_ms is None


def test_an_open_one_beside_it_keeps_its_deadline(filled: World) -> None:
    stored_without_key(filled, ErasureState.TOMBSTONED, deadline_ms=filled.now_ms + DAY_MS)
    counted_as_open(filled)
    filled.ask(KEY, id="r2", deadline_ms=filled.now_ms + 9 * DAY_MS)
    summary = read_open_erasures("users", filled.store.load_table("users").properties)
    assert (summary.count, summary.earliest_deadline_ms) == (1, filled.now_ms + 9 * DAY_MS)


def test_the_command_does_not_fail_for_ever_because_of_one_and_tells_who_names_it_that_it_is_no_proof(
    keptlog: Run, lines: Any, home: Path
) -> None:
    keptlog("topic", "create", "users", "--config", "cleanup.policy=compact")
    keptlog("append", "users", "--file", lines({"key": "a", "value": "1"}))
    stored_without_key(World(home), ErasureState.TOMBSTONED, ErasureState.DELETED)
    every, named = keptlog("erasure", "verify"), keptlog("erasure", "verify", "r1")
    assert (every.code, named.code) == (0, 1)
    assert OF_NO_KEY in every.out
    assert OF_NO_KEY in named.out
