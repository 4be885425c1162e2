"""After a commit by a fast clock all others have its time: what is of another home is known all the same (ADR 31)."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.doctor.topic_exam import examined
from keptlog.table.namespaces import NAMESPACE
from keptlog.table.store import LogStore
from tests.table.foreign import table_of
from tests.table.purges import DAY_MS, clock_ms
from tests.table.stores import COMPACTED, TOPIC, append_each, new_id, store_at, values
from tests.table.test_elsewhere_without_numbers import copied_beside, head_of

HISTORY = 24
"""Commits, until the catalog names no metadata file of before."""
LATER_MS = 5 * DAY_MS


def store_with_clock(home: Path, now_ms: int) -> LogStore:
    home.mkdir(exist_ok=True)
    return LogStore(open_catalog(home, lambda: now_ms), {}, time.sleep, new_id)


def at_one_time(home: Path) -> LogStore:
    """A topic that was created by a clock that was two days fast; it was set right, and then more was committed."""
    store_with_clock(home, clock_ms() + 2 * DAY_MS).create_topic(TOPIC, 1, COMPACTED)
    store = store_at(home)
    append_each(store, *[[("a", str(number))] for number in range(HISTORY)])
    assert len({each.timestamp_ms for each in table_of(home).metadata.metadata_log}) == 1
    return store


def test_a_home_that_was_restored_deletes_nothing_of_who_went_on(tmp_path: Path) -> None:
    home = tmp_path / "home"
    store = at_one_time(home)
    shutil.copy(home / "catalog.db", tmp_path / "backup.db")
    append_each(store, *[[("b", str(number))] for number in range(8)])
    before = {path for path in home.rglob("*") if path.is_file()}
    shutil.copy(tmp_path / "backup.db", home / "catalog.db")

    restored = store_at(home)
    with pytest.raises(LogCorrupt, match="the storage knows more than this catalog"):
        restored.purge(TOPIC, clock_ms() + LATER_MS)
    with pytest.raises(LogCorrupt, match="the storage knows more than this catalog"):
        restored.delete_topic(TOPIC, clock_ms() + LATER_MS)
    exam = examined(restored, TOPIC)
    assert (exam.copied, len(exam.unknown_metadata)) == ((), 8)
    assert {path for path in home.rglob("*") if path.is_file()} >= before


def test_the_same_while_the_oldest_file_of_its_history_can_not_be_read(tmp_path: Path) -> None:
    home = tmp_path / "home"
    store = at_one_time(home)
    shutil.copy(home / "catalog.db", tmp_path / "backup.db")
    oldest = Path(table_of(home).metadata.metadata_log[0].metadata_file.removeprefix("file://"))
    append_each(store, *[[("b", str(number))] for number in range(8)])
    shutil.copy(tmp_path / "backup.db", home / "catalog.db")
    oldest.unlink(missing_ok=True)
    with pytest.raises(LogCorrupt, match="the storage knows more than this catalog"):
        store_at(home).purge(TOPIC, clock_ms() + LATER_MS)


def test_an_attempt_that_never_landed_is_swept_once_its_base_has_left_the_history(tmp_path: Path) -> None:
    home = tmp_path / "home"
    store_with_clock(home, clock_ms() + 2 * DAY_MS).create_topic(TOPIC, 1, COMPACTED)
    shutil.copy(home / "catalog.db", tmp_path / "before.db")
    append_each(store_at(home), [("a", "never landed")])
    attempt = head_of(home)
    shutil.copy(tmp_path / "before.db", home / "catalog.db")
    store = store_at(home)
    append_each(store, *[[("a", str(number))] for number in range(HISTORY)])
    store.purge(TOPIC, clock_ms() + LATER_MS)
    assert not attempt.exists()


def test_a_registered_copy_is_known_as_one_while_it_is_the_oldest_of_the_history(tmp_path: Path) -> None:
    home, others = tmp_path / "home", tmp_path / "other"
    at_one_time(home)
    head = head_of(home)
    copy = copied_beside(head, tmp_path / "safe" / head.name)
    others.mkdir()
    catalog = open_catalog(others)
    catalog.create_namespace_if_not_exists(NAMESPACE)
    catalog.register_table((NAMESPACE, TOPIC), f"file://{copy}")
    other = store_at(others)
    before = values(store_at(home))
    while table_of(others).metadata.metadata_log[0].metadata_file != f"file://{copy}":
        append_each(other, [("a", "x")])
    assert examined(other, TOPIC).copied == (f"file://{head}",)
    away = copy.rename(tmp_path / "away")
    assert examined(other, TOPIC).copied == (f"file://{head}",)
    away.rename(copy)
    other.purge(TOPIC, clock_ms() + LATER_MS)
    assert values(store_at(home)) == before
