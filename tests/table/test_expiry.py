"""What only expired snapshots have: read from few manifests, and the same as if all had been compared with all."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.table.snapshots import Snapshot

from keptlog.table.expiry import _follower, expiry_of
from keptlog.table.references import Manifests, References, references_of
from tests.profiles import examples
from tests.table.snapshots import History
from tests.table.stores import TOPIC, create


def compared(history: History, expired: list[Snapshot]) -> References:
    """All that stays compared with all that goes."""
    manifests = Manifests(TOPIC, history.table.io)
    gone = {each.snapshot_id for each in expired}
    kept = [each for each in history.table.metadata.snapshots if each.snapshot_id not in gone]
    return references_of(expired, manifests).without(references_of(kept, manifests))


def happen(history: History, dice: random.Random, *, is_single_line: bool) -> None:
    """One thing that happens to a table."""
    live, snapshots = history.live, history.table.metadata.snapshots
    kinds = ["append", "append", "append", "clean", "retain", "empty", "expire"]
    kind = dice.choice(kinds if is_single_line else [*kinds, "tag", "roll back"])
    if kind == "clean" and live:
        first = dice.randrange(len(live))
        history.add([history.new_file()], live[first : first + dice.randint(1, 4)])
    elif kind == "retain" and live:
        history.add([], live[: dice.randint(1, len(live))])
    elif kind == "empty":
        history.add()
    elif kind == "expire" and len(snapshots) > 2:
        history.expire(oldest(history, dice.randint(1, len(snapshots) - 2)))
    elif kind == "tag" and snapshots:
        history.tag(dice.choice(snapshots), f"tag-{dice.randrange(3)}")
    elif kind == "roll back" and snapshots:
        history.roll_back(dice.choice(snapshots))
    else:
        history.add([history.new_file() for _ in range(dice.randint(1, 3))])


def oldest(history: History, count: int) -> list[Snapshot]:
    """The oldest snapshots, but for those that must stay."""
    protected = {reference.snapshot_id for reference in history.table.metadata.refs.values()}
    return [each for each in history.table.metadata.snapshots[:count] if each.snapshot_id not in protected]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a topic, from which each history begins anew."""
    home = tmp_path_factory.mktemp("home")
    create(home)
    return home


@settings(max_examples=examples(40))
@given(seed=st.integers(0, 2**32), steps=st.integers(2, 20), is_single_line=st.booleans())
def test_what_few_manifests_tell_is_what_all_of_them_tell(
    home: Path, seed: int, steps: int, is_single_line: bool
) -> None:
    dice, history = random.Random(seed), History(home)
    for _ in range(steps):
        happen(history, dice, is_single_line=is_single_line)
    expired = oldest(history, dice.randint(1, max(1, len(history.table.metadata.snapshots) - 1)))
    if is_single_line and expired:
        assert _follower(history.table, expired)
    found = expiry_of(history.table, expired, Manifests(TOPIC, history.table.io))
    assert found.files == compared(history, expired)
    assert found.unreadable == []


def test_a_history_with_a_fork_is_compared_as_a_whole(tmp_path: Path) -> None:
    create(tmp_path)
    history = History(tmp_path)
    first = history.add([history.new_file()])
    second = history.add([history.new_file()])
    assert _follower(history.table, [first]) == second
    history.roll_back(first)
    third = history.add([history.new_file()])
    assert _follower(history.table, [second]) is None
    found = expiry_of(history.table, [second], Manifests(TOPIC, history.table.io)).files
    assert found == compared(history, [second])
    assert third.manifest_list not in found.metadata_bytes
    assert len(found.data_bytes) == 1
