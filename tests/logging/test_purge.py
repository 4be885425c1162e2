"""A purge says what is off the storage: a line for all segments, one for all orphans, one for each journal it found."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from keptlog.table.store import LogStore
from tests.logging.lines import lines
from tests.table.stores import NOW_MS, TOPIC, append_each, clean, create

MUCH_LATER_MS = 2**45


@pytest.fixture
def store(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> LogStore:
    caplog.set_level(logging.DEBUG)
    store = create(tmp_path)
    append_each(store, [("a", "1")], [("a", "2")])
    return store


def folder(store: LogStore) -> Path:
    return Path(store.describe_topic(TOPIC).location.removeprefix("file://"))


def test_nothing_to_purge_is_no_line(store: LogStore, caplog: pytest.LogCaptureFixture) -> None:
    store.purge(TOPIC, NOW_MS)
    assert lines(caplog, logging.DEBUG) == []


def test_what_the_receipt_says_is_not_told_again_but_to_whoever_looks_closer(
    store: LogStore, caplog: pytest.LogCaptureFixture
) -> None:
    clean(store)
    store.seal = lambda _: None
    purged = store.purge(TOPIC, MUCH_LATER_MS)
    size_bytes = sum(file.bytes for file in purged.deleted_files)
    told = f"topic {TOPIC}: 2 retired segments, {size_bytes} bytes, gone: receipt {purged.receipts[0]}"
    assert lines(caplog) == []
    assert ("DEBUG", told) in lines(caplog, logging.DEBUG)


def test_a_receipt_that_can_not_be_sealed_is_told_with_the_reason(
    store: LogStore, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_: object) -> None:
        raise OSError("no such key")

    clean(store)
    for seal, why in ((None, "no chain of receipts is open"), (fails, "OSError: no such key")):
        store.seal = seal
        caplog.clear()
        store.purge(TOPIC, MUCH_LATER_MS)
        told = f"topic {TOPIC}: 1 receipt can't be sealed ({why}); the next purge seals what waits"
        assert ("WARNING", told) in lines(caplog)


def test_orphans_are_one_line_together_and_one_each(store: LogStore, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("x", "y"):
        (folder(store) / "data" / f"{name}.parquet").write_bytes(b"staged")
    store.purge(TOPIC, MUCH_LATER_MS)
    together = f"topic {TOPIC}: 2 orphans, 12 bytes, gone: what crashes and refused commits left"
    told = [text for _, text in lines(caplog, logging.DEBUG) if "orphan" in text]
    assert (len(told), told.count(together)) == (3, 1)


def test_the_journal_of_a_purge_that_was_killed_is_told(store: LogStore, caplog: pytest.LogCaptureFixture) -> None:
    journals = folder(store) / "metadata" / "gc"
    journals.mkdir()
    (journals / "half.json").write_text('{"snapsh')
    (journals / "whole.json").write_text('{"snapshots": [], "segments": [], "metadata": []}')
    store.purge(TOPIC, NOW_MS)
    folder_of_both = f"{store.describe_topic(TOPIC).location}/metadata/gc/"
    broken = "half.json='{\"snapsh' is no journal of a purge (it is not JSON); keptlog purge sets it aside"
    assert set(lines(caplog)) == {
        ("WARNING", folder_of_both + broken),
        ("INFO", f"topic {TOPIC}: journal {folder_of_both}whole.json of an earlier purge is carried out"),
    }
