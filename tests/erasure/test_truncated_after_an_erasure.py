"""A log in whose topic keys were erased is not truncated, nor advised to be; what comes anew is to lose them."""

from __future__ import annotations

import pytest

from keptlog.errors import InvalidConfig
from keptlog.home import new_id
from keptlog.log.source import SourceIdentity, SourceLog, SourceTopic, plan_ingest
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.changes.truncate import Truncation
from tests.erasure.world import KEY, OTHER, VALUE, World

DAY_MS = 24 * 3_600_000


def with_source(world: World) -> None:
    world.create()
    world.ingest({0: (OTHER, VALUE), 1: (KEY, VALUE), 2: (OTHER, b"2")}, 3)


def refusal(world: World) -> str:
    truncation = Truncation(TopicPartition("users", 0), 2, new_id(), new_id)
    with pytest.raises(InvalidConfig) as refused:
        truncation.commit(world.store.committer, world.store.files)
    return str(refused.value)


def advice(world: World) -> str:
    """Of an ingest, where the source was cut off at offset 2."""
    stored = world.store.source_of("users")
    found = SourceTopic(SourceIdentity("there"), (SourceLog(0, 0, 2),))
    return plan_ingest("users", stored, found).stopped[0]


def test_whoever_ingests_the_source_into_another_topic_is_told_to_erase_the_keys_there(world: World) -> None:
    with_source(world)
    world.ask(is_here=True)
    assert "--into users-again), and erase there too what is at its source still (keptlog erase" in refusal(world)
    assert len(world.records()) == 2


def test_so_is_whoever_deletes_a_cleaned_one_first_and_ingests_it_anew(world: World) -> None:
    with_source(world)
    world.ask(is_here=True)
    world.later(9 * DAY_MS)
    world.clean()
    told = refusal(world)
    assert "or delete the one here first (keptlog topic delete users); keys were erased in topic users," in told
    assert told.endswith("erase there too what is at its source still (keptlog erase)")


def test_an_ingest_that_stops_at_a_log_that_was_cut_off_advises_to_truncate_where_that_is_not_refused(
    world: World,
) -> None:
    with_source(world)
    assert "(keptlog truncate users-0 2)" in advice(world)
    assert "keptlog erase" not in advice(world)


def test_it_does_not_where_keys_were_erased_and_says_to_erase_them_in_what_is_read_anew(world: World) -> None:
    with_source(world)
    world.ask(is_here=True)
    assert "keptlog truncate" not in advice(world)
    assert advice(world).endswith("erase there too what is at its source still (keptlog erase)")


def test_nor_does_it_where_a_clean_has_been(world: World) -> None:
    with_source(world)
    world.later(9 * DAY_MS)
    world.clean()
    assert "it is cleaned up to offset 3" in refusal(world)
    assert "keptlog truncate" not in advice(world)
    assert "(--into users-again), or delete the one here first (keptlog topic delete users)" in advice(world)
