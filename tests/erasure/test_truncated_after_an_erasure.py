"""A log in whose topic keys were erased is not truncated; the topic that takes its place is to lose the keys too."""

from __future__ import annotations

import pytest

from keptlog.errors import InvalidConfig
from keptlog.home import new_id
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.changes.truncate import Truncation
from tests.erasure.world import KEY, OTHER, VALUE, World


@pytest.mark.parametrize("is_cleaned", [False, True])
def test_whoever_ingests_the_source_into_another_topic_is_told_to_erase_the_keys_there(
    world: World, *, is_cleaned: bool
) -> None:
    world.create()
    world.ingest({0: (OTHER, VALUE), 1: (KEY, VALUE), 2: (OTHER, b"2")}, 3)
    world.ask(is_here=True)
    if is_cleaned:
        world.later(9 * 24 * 3_600_000)
        world.clean()
    store = world.store
    truncation = Truncation(TopicPartition("users", 0), 2, new_id(), new_id)
    with pytest.raises(
        InvalidConfig, match=r"--into users-again\), and erase there too .*\(keptlog erase users-again\)"
    ):
        truncation.commit(store.committer, store.files)
    assert len(world.records()) == (1 if is_cleaned else 2)
