"""A purge's receipt names exactly those files, and whoever keeps them, that G8 judges."""

from __future__ import annotations

from pathlib import Path

from keptlog.log.holder import Terms
from keptlog.table.removal.held import held_in
from keptlog.table.store import LogStore
from tests.table.foreign import insert, set_properties, table_of
from tests.table.purges import DAY_MS, MINUTE_MS, cleaned, clock_ms, receipts
from tests.table.stores import TOPIC, append_each, clean, create, store_at

LATER_MS = 10 * MINUTE_MS


def judged(store: LogStore) -> list[tuple[str, str]]:
    """Path and holder of all that has a deadline, as the verification sees it."""
    terms = Terms(MINUTE_MS)
    found = held_in(lambda: store.load_table(TOPIC), store.files, terms, clock_ms() + LATER_MS)
    return sorted(
        (each.path or "", f"{each.kind} {each.name}".rstrip())
        for each in found.held
        if each.deadline_ms(terms) is not None
    )


def told(home: Path) -> list[tuple[str, str]]:
    """The same as the newest receipt says it."""
    newest = max(receipts(home), key=lambda each: each["at_ms"])
    return sorted((file["path"], file["holder"]) for file in newest["held_files"])


def purged(home: Path) -> LogStore:
    """A purge of all that is due, with an orphan, so that there is a receipt."""
    store = store_at(home)
    store.files.write_bytes(f"{store.describe_topic(TOPIC).location}/data/partition=0/left.parquet", b"an orphan")
    store.purge(TOPIC, clock_ms() + LATER_MS, orphan_grace_ms=0)
    return store


def test_what_a_branch_keeps_outside_of_the_folder_is_in_the_receipt(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")])
    first = table_of(tmp_path).metadata.snapshots[0].snapshot_id
    table_of(tmp_path).manage_snapshots().create_branch(first, "trial").commit()
    set_properties(tmp_path, {"write.data.path": f"file://{tmp_path}/beside"})
    insert(tmp_path, 1, branch="trial")
    append_each(store, [("a", "2")])
    clean(store)
    store = purged(tmp_path)
    assert told(tmp_path) == judged(store)
    kept = [path for path, holder in told(tmp_path) if holder == "branch trial"]
    assert [path.startswith(f"file://{tmp_path}/beside/") for path in kept] == [True, False]


def test_a_file_that_two_tags_keep_is_in_the_receipt_for_each(tmp_path: Path) -> None:
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    first = table_of(tmp_path).metadata.snapshots[0].snapshot_id
    table_of(tmp_path).manage_snapshots().create_tag(first, "one").create_tag(first, "two").commit()
    clean(store)
    store = purged(tmp_path)
    assert told(tmp_path) == judged(store)
    assert sorted(holder for _, holder in told(tmp_path)) == ["tag one", "tag two"]


def test_bounds_of_keys_in_another_programs_manifest_are_in_the_receipt(tmp_path: Path) -> None:
    append_each(create(tmp_path), [("a", "1")])
    table = table_of(tmp_path)
    first = table.metadata.snapshots[0].snapshot_id
    table.manage_snapshots().create_branch(first, "theirs").commit()
    set_properties(tmp_path, {"write.metadata.metrics.default": "full"})
    insert(tmp_path, 1, branch="theirs")
    store = purged(tmp_path)
    assert told(tmp_path) == judged(store)
    assert "statistics" in [holder for path, holder in told(tmp_path) if path.endswith(".avro")]


def test_a_journal_that_was_set_aside_is_in_the_receipt_where_it_lies_now(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    location = store.describe_topic(TOPIC).location
    store.files.write_bytes(f"{location}/metadata/gc/broken.json", b"a value")
    receipt = store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    aside = f"{location}/metadata/receipts/unreadable/broken.json"
    assert [(file.path, file.holder) for file in receipt.held] == [(aside, "journal")]
    assert (aside, "journal") in told(tmp_path)
    assert told(tmp_path) == judged(store)


def test_a_snapshot_of_a_tag_that_can_not_be_read_is_told_as_not_looked_at(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    store.purge(TOPIC, clock_ms() + LATER_MS)
    assert receipts(tmp_path), "it waits to be sealed, so that the next purge looks at all"
    first = table_of(tmp_path).metadata.snapshots[0]
    table_of(tmp_path).manage_snapshots().create_tag(first.snapshot_id, "audit").commit()
    append_each(store, [("c", "5")])
    Path(first.manifest_list.removeprefix("file://")).write_bytes(b"rot")
    [line] = store_at(tmp_path).purge(TOPIC, clock_ms()).not_looked_at
    assert first.manifest_list in line
