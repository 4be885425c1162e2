"""A deletion that was begun and taken back, as by a catalog that was put back: no purge goes on with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.namespaces import DELETING, NAMESPACE
from keptlog.table.purge_preview import preview_purge
from keptlog.table.removal.journal import journal_folder, unreadable_folder
from keptlog.table.removal.removal import Removal
from keptlog.table.store import LogStore
from tests.table.purges import DAY_MS, MINUTE_MS, cleaned, clock_ms, receipts
from tests.table.stores import TOPIC, store_at, values

KEPT = ("readers/search/4f/0-3.json", "runs/1.json")


@pytest.fixture
def back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LogStore:
    """The deletion was killed right behind its journal, and the topic is there again."""
    store = cleaned(tmp_path)
    store.purge(TOPIC, clock_ms() + 60 * MINUTE_MS)
    for name in KEPT:
        store.files.write_bytes(f"{store.describe_topic(TOPIC).location}/metadata/receipts/{name}", b"{}")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Removal, "delete", killed)
        with pytest.raises(KeyboardInterrupt):
            store.delete_topic(TOPIC, clock_ms())
    open_catalog(tmp_path).rename_table((DELETING, TOPIC), (NAMESPACE, TOPIC))
    return store_at(tmp_path)


def listed(store: LogStore) -> set[str]:
    return {file.path for file in store.files.list(store.describe_topic(TOPIC).location)}


def test_a_purge_deletes_nothing_by_its_journal_and_sets_it_aside(
    back: LogStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    location, before, told = back.describe_topic(TOPIC).location, listed(back), receipts(tmp_path)
    [journal] = [path for path in before if path.startswith(journal_folder(location))]
    live = values(back)
    purged = back.purge(TOPIC, clock_ms())
    aside = unreadable_folder(location) + journal.rpartition("/")[2]
    assert listed(back) == before - {journal} | {aside}
    assert f"{journal} is the journal of a deletion that was taken back" in caplog.text
    assert (purged.deleted_metadata, purged.receipts) == ((), ())
    assert receipts(tmp_path) == told
    assert values(back) == live


def test_nothing_of_it_is_counted_as_due(back: LogStore) -> None:
    preview = preview_purge(back, TOPIC, clock_ms(), DAY_MS)
    assert not preview.deletes_anything


def test_it_can_be_deleted_all_the_same(back: LogStore, tmp_path: Path) -> None:
    location = back.describe_topic(TOPIC).location
    back.purge(TOPIC, clock_ms())
    assert back.delete_topic(TOPIC, clock_ms()).is_over
    left = [file.path for file in back.files.list(location)]
    assert all(path.startswith(f"{location}/metadata/receipts/") for path in left)
