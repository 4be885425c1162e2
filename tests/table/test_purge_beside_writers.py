"""A purge lands beside writers, however many snapshots there are, and reads what is new, once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io import InputFile
from pyiceberg.table import CommitTableResponse, Table

from keptlog.errors import LogCorrupt, StalePlan
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.io.file_io import DurableFileIO
from keptlog.table.purging import purge
from tests.table.foreign import current_id, set_main
from tests.table.purges import DAY_MS, MINUTE_MS, cleaned, clock_ms, live_paths, paths_of_values, proved, receipts
from tests.table.snapshots import History
from tests.table.stores import TOPIC, FaultyCatalog, append_each, clean, create, store_at, store_over, values

SNAPSHOTS = 600
LATER_MS = 60 * MINUTE_MS
"""Later than what is written while a purge goes on."""


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each manifest and manifest list was read."""
    counted: Counter[str] = Counter()
    really = DurableFileIO.new_input

    def new_input(io: DurableFileIO, location: str) -> InputFile:
        if location.endswith(".avro"):
            counted[location] += 1
        return really(io, location)

    monkeypatch.setattr(DurableFileIO, "new_input", new_input)
    return counted


def with_snapshots(home: Path, count: int) -> None:
    """A topic as so many commits make it: appends, and a clean of the last ten at each tenth."""
    create(home)
    history = History(home)
    for number in range(count):
        file = history.new_file()
        local = Path(file.file_path.removeprefix("file://"))
        local.parent.mkdir(parents=True, exist_ok=True)
        local.write_bytes(b"x")
        history.add([file], history.live[-10:] if number % 10 == 9 else ())
    history.save({"log.p0.log-end-offset": str(count)})


def behind_writers(catalog: Catalog, write: Callable[[], object], times: int) -> FaultyCatalog:
    """A catalog to which a writer commits before each of the first ``times`` commits that go through it."""
    between = FaultyCatalog(catalog)

    def lost(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
        write()
        return commit()

    between.faults = [lost] * times
    return between


def test_a_purge_of_many_snapshots_lands_beside_a_writer_that_commits_between_its_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Counter[str]
) -> None:
    monkeypatch.setattr(purge, "EXPIRED_AT_ONCE", 2 * SNAPSHOTS)
    with_snapshots(tmp_path, SNAPSHOTS)
    writer = store_at(tmp_path)
    by_attempt: list[Counter[str]] = []

    def write() -> None:
        by_attempt.append(Counter(read))
        append_each(writer, [("a", "1")])
        read.clear()

    catalog = behind_writers(open_catalog(tmp_path), write, times=2)
    receipt = store_over(catalog).purge(TOPIC, clock_ms() + LATER_MS)
    assert len(receipt.expired_snapshots) == SNAPSHOTS + 1
    assert catalog.commits == 3
    assert set(by_attempt[0].values()) == {1}
    assert SNAPSHOTS < len(by_attempt[0]) < 3 * SNAPSHOTS
    # The second attempt reads what the first writer has brought, and so does the third.
    assert [sum(each.values()) for each in (by_attempt[1], read)] == [2, 2]
    assert {f"file://{path}" for path in (tmp_path / "warehouse").rglob("*.parquet")} == live_paths(writer)


def test_what_is_read_grows_with_what_expires_and_not_with_what_there_is(tmp_path: Path, read: Counter[str]) -> None:
    create(tmp_path)
    history = History(tmp_path)
    for _ in range(15):
        file = history.new_file()
        store_at(tmp_path).files.write_bytes(file.file_path, b"x")
        history.add([file])
    history.save({"log.p0.log-end-offset": "15"})
    snapshots = history.table.metadata.snapshots
    read.clear()
    receipt = store_at(tmp_path).purge(TOPIC, snapshots[3].timestamp_ms + MINUTE_MS)
    assert len(receipt.expired_snapshots) == 3
    # The lists of those three, of the first that stays, and of the current one; each manifest once at most.
    lists = {each.manifest_list for each in snapshots}
    assert {path for path in read if path in lists} == {snapshots[at].manifest_list for at in (0, 1, 2, 3, -1)}
    assert set(read.values()) == {1}


def test_snapshots_expire_in_portions_and_each_has_its_receipt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purge, "EXPIRED_AT_ONCE", 15)
    with_snapshots(tmp_path, 40)
    catalog = FaultyCatalog(open_catalog(tmp_path))
    receipt = store_over(catalog).purge(TOPIC, clock_ms() + LATER_MS)
    assert (catalog.commits, len(receipt.expired_snapshots)) == (3, 39)
    assert proved(tmp_path) == sorted(file.path for file in receipt.deleted_files)
    assert len(set(proved(tmp_path))) == len(proved(tmp_path)) == 39


def refused(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
    raise CommitFailedException("another commit came first")


def unanswered(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
    raise ConnectionError("no answer")


def answer_lost(commit: Callable[[], CommitTableResponse]) -> CommitTableResponse:
    commit()
    raise ConnectionError("no answer")


@pytest.mark.parametrize("fault", [refused, unanswered, answer_lost])
def test_a_commit_that_is_tried_again_leaves_one_receipt_for_one_segment(
    tmp_path: Path, fault: Callable[[Callable[[], CommitTableResponse]], CommitTableResponse]
) -> None:
    store = cleaned(tmp_path)
    catalog = FaultyCatalog(open_catalog(tmp_path))
    catalog.faults = [fault, fault]
    receipt = store_over(catalog).purge(TOPIC, clock_ms() + LATER_MS)
    assert len(receipt.deleted_files) == 3
    assert len(receipts(tmp_path)) == 1
    assert proved(tmp_path) == sorted(file.path for file in receipt.deleted_files)
    assert paths_of_values(store) == live_paths(store)


def test_what_another_attempt_expires_besides_is_in_the_same_receipt(tmp_path: Path) -> None:
    store = cleaned(tmp_path)
    catalog = behind_writers(open_catalog(tmp_path), lambda: append_each(store, [("c", "5")]), times=2)
    receipt = store_over(catalog).purge(TOPIC, clock_ms() + LATER_MS)
    assert len(receipt.expired_snapshots) == 5
    [proof] = receipts(tmp_path)
    assert sorted(proof["expired_snapshots"]) == sorted(receipt.expired_snapshots)
    assert len(proved(tmp_path)) == 3
    store.purge(TOPIC, clock_ms() + 2 * DAY_MS)
    assert len(values(store)) == 4


@pytest.mark.parametrize("look", range(1, 7))
def test_what_a_faster_purge_has_deleted_under_a_slower_one_is_no_damage(tmp_path: Path, look: int) -> None:
    store = create(tmp_path, config={"file.delete.delay.ms": "0"})
    append_each(store, [("a", "1")], [("a", "2")], [("b", "1")])
    clean(store)

    class Overtaken(FaultyCatalog):
        """At one of its looks at the table it gets what was there before a clean and another purge."""

        looks = 0

        def load_table(self, identifier: object) -> Table:
            table = super().load_table(identifier)
            self.looks += 1
            if self.looks == look:
                append_each(store, [("a", "3")])
                clean(store)
                store.purge(TOPIC, clock_ms() + LATER_MS)
            return table

    with suppress(StalePlan):
        store_over(Overtaken(open_catalog(tmp_path))).purge(TOPIC, clock_ms() + LATER_MS)
    store.purge(TOPIC, clock_ms() + LATER_MS)
    assert [value for _, _, value in values(store)] == [b"1", b"3"]


def test_nothing_expires_where_main_was_put_back_to_the_snapshot_that_the_purge_has_seen(tmp_path: Path) -> None:
    """An append and a rollback of it leave main as it was, and the state with what is gone (simulation, 108159)."""
    create(tmp_path)
    writer = store_at(tmp_path)
    append_each(writer, [("a", "1")], [("a", "2")])
    seen = current_id(tmp_path, TOPIC)
    before = len(writer.load_table(TOPIC).metadata.snapshots)

    def write() -> None:
        append_each(writer, [("a", "3")])
        set_main(tmp_path, seen, TOPIC)

    catalog = behind_writers(open_catalog(tmp_path), write, times=1)
    with pytest.raises(LogCorrupt, match="rolled back"):
        store_over(catalog).purge(TOPIC, clock_ms() + LATER_MS)
    assert len(writer.load_table(TOPIC).metadata.snapshots) == before + 1
