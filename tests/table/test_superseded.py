"""What a table alone tells of superseded bytes is what a look at everything finds, but for what only storage knows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.io import FileIO, InputFile

from keptlog.log.holder import Held, HolderKind, Terms
from keptlog.table.io.file_io import DurableFileIO
from keptlog.table.removal.held import held_in
from keptlog.table.removal.superseded import SupersededFiles
from keptlog.table.store import LogStore
from tests.table.foreign import table_of
from tests.table.purges import MINUTE_MS, cleaned, clock_ms
from tests.table.stores import TOPIC, append_each, clean, create

BY_SNAPSHOTS = {HolderKind.RETIRED, HolderKind.TAG, HolderKind.BRANCH}


def sums(held: tuple[Held, ...]) -> dict[tuple[str, str, int], tuple[int, int]]:
    """Holder and time to files and bytes."""
    found: dict[tuple[str, str, int], tuple[int, int]] = {}
    for each in held:
        if each.kind in BY_SNAPSHOTS:
            files, size_bytes = found.get((each.kind, each.name, each.since_ms), (0, 0))
            found[each.kind, each.name, each.since_ms] = files + (each.files or 0), size_bytes + (each.bytes or 0)
    return found


def require_same(store: LogStore) -> set[str]:
    """Gives the kinds that both have found."""
    told = sums(SupersededFiles().of(store.load_table(TOPIC)))
    assert sums(store.observe(TOPIC).holdings.held) == told
    full = held_in(lambda: store.load_table(TOPIC), store.files, Terms(MINUTE_MS), clock_ms())
    assert told == sums(full.held)
    return {kind for kind, _, _ in told}


def tag(home: Path, number: int, name: str) -> None:
    table = table_of(home)
    table.manage_snapshots().create_tag(table.metadata.snapshots[number].snapshot_id, name).commit()


def test_both_looks_find_the_same_through_a_history_with_cleans_purges_and_tags(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("b", "1")])
    assert require_same(store) == set()
    tag(tmp_path, 0, "first")
    append_each(store, [("a", "2")], [("b", "2")])
    assert require_same(store) == set()
    clean(store)
    assert require_same(store) == {"retired", "tag"}
    tag(tmp_path, -2, "second")
    append_each(store, [("a", "3")])
    clean(store)
    assert require_same(store) == {"retired", "tag"}
    store.purge(TOPIC, clock_ms() + MINUTE_MS + 1)
    assert require_same(store) == {"tag"}
    table_of(tmp_path).manage_snapshots().remove_tag("first").remove_tag("second").commit()
    store.purge(TOPIC, clock_ms() + MINUTE_MS + 1)
    assert require_same(store) == set()


def test_a_table_without_tags_is_told_of_without_reading_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = cleaned(tmp_path).load_table(TOPIC)

    def reads(_: FileIO, location: str) -> InputFile:
        raise AssertionError(location)

    monkeypatch.setattr(DurableFileIO, "new_input", reads)
    [held] = SupersededFiles().of(table)
    assert (held.kind, held.files) == (HolderKind.RETIRED, 3)


@pytest.mark.parametrize("what", ["manifest list", "manifest"])
def test_a_tag_that_cannot_be_read_holds_something_uncounted_and_costs_nothing_else(tmp_path: Path, what: str) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    tag(tmp_path, 0, "audit")
    clean(store)
    first = table_of(tmp_path).metadata.snapshots[0]
    [manifest] = first.manifests(table_of(tmp_path).io)
    rotten = first.manifest_list if what == "manifest list" else manifest.manifest_path
    Path(rotten.removeprefix("file://")).write_bytes(b"rot")
    observed = store.observe(TOPIC)
    assert len(observed.logs) == 1
    [held] = [each for each in observed.holdings.held if each.kind is HolderKind.TAG]
    assert (held.name, held.files) == ("audit", None)


def test_what_was_committed_since_is_read_with_the_access_of_the_table_that_was_just_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")])
    tag(tmp_path, 0, "audit")
    append_each(store, [("a", "2")])
    files, before = SupersededFiles(), store.load_table(TOPIC)
    files.of(before)

    def is_over(location: str) -> InputFile:
        raise PermissionError(f"{location}: the credentials have expired")

    monkeypatch.setattr(before.io, "new_input", is_over)
    clean(store)
    after = store.load_table(TOPIC)
    assert after.io is not before.io
    assert files.of(after) == SupersededFiles().of(after)
