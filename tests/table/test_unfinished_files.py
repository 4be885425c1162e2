"""What a killed writer of a journal, a draft or a position leaves is nobody's file, and goes with the next purge."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

from keptlog.log.holder import ORPHAN_GRACE_MS, HolderKind, Terms
from keptlog.table.reading.readers import PositionFiles, ReaderPosition, Registration
from keptlog.table.removal.held import held_in
from tests.table.purges import MINUTE_MS, cleaned, clock_ms
from tests.table.stores import TOPIC, files_below, store_at, values

PROCESSES = multiprocessing.get_context("forkserver")


def parts_below(home: Path) -> list[Path]:
    return sorted((home / "warehouse").rglob("*.part"))


def test_a_journal_that_was_never_named_is_no_journal_and_no_reason_to_wait_for_anybody(tmp_path: Path) -> None:
    """Half a journal used to be set aside for people, and kept every erasure of its topic from being verified."""
    store = cleaned(tmp_path)
    before = values(store)
    process = PROCESSES.Process(target=_purge_and_die_before_the_journal_is_named, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    (part,) = parts_below(tmp_path)
    assert part.parent.name == "gc"
    store = store_at(tmp_path)
    now_ms = clock_ms() + MINUTE_MS + 1
    holdings = held_in(lambda: store.load_table(TOPIC), store.files, Terms(MINUTE_MS), now_ms)
    (held,) = [each for each in holdings.held if each.path == f"file://{part}"]
    assert held.kind == HolderKind.STAGED
    receipt = store.purge(TOPIC, now_ms)
    assert receipt.unreadable == ()
    assert len(receipt.deleted_files) == 3
    assert parts_below(tmp_path) == [part]
    store.purge(TOPIC, clock_ms() + ORPHAN_GRACE_MS + 1)
    assert parts_below(tmp_path) == []
    assert not list((tmp_path / "warehouse").rglob("unreadable"))
    assert len(files_below(tmp_path)) == 1
    assert values(store) == before


def test_half_a_draft_and_half_a_position_are_none(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    receipts = Path(store.describe_topic(TOPIC).location.removeprefix("file://"), "metadata", "receipts")
    registration = Registration("id-1", 0, 0)
    positions = PositionFiles(store.files, store.describe_topic(TOPIC).location)
    positions.write("reader", registration, 0, ReaderPosition(3))
    (position,) = (receipts / "readers").rglob("*.json")
    for path in (receipts / "draft.json.0123.part", position.with_name("0-4.json.4567.part")):
        path.write_bytes(b"{")
    assert positions.read({"reader": registration})["reader"].found == {0: ReaderPosition(3)}
    assert positions.read({"reader": registration})["reader"].problem is None
    assert store.purge(TOPIC, clock_ms()).unreadable == ()
    assert len(parts_below(tmp_path)) == 2
    store.purge(TOPIC, clock_ms() + ORPHAN_GRACE_MS + 1)
    assert parts_below(tmp_path) == []
    assert positions.read({"reader": registration})["reader"].found == {0: ReaderPosition(3)}


def _purge_and_die_before_the_journal_is_named(home: Path) -> None:
    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    Path.replace = die  # type: ignore[method-assign, assignment]
    store_at(home).purge(TOPIC, clock_ms() + MINUTE_MS + 1)
