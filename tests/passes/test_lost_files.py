"""A live file that is not there is corruption, named with the file; one that was replaced and purged, a stale plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt, StalePlan
from keptlog.home import new_id
from keptlog.log.broker import BrokerConfig
from keptlog.log.record import NewRecord
from keptlog.passes.clean import Cleaner, Pass
from keptlog.passes.repair import Repairer
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.passes.conftest import DAY_MS, NOW_MS
from tests.table.foreign import roll_back


@pytest.fixture
def cleaner(store: LogStore) -> Cleaner:
    return Cleaner(store, in_process_engine(store.files), BrokerConfig())


def run(cleaner: Cleaner, *names: str, now_ms: int = NOW_MS) -> Pass:
    return cleaner.commit(cleaner.stage(cleaner.begin(names, new_id(), now_ms=now_ms, requested=bool(names))))


def local(path: str | None) -> Path:
    assert path
    return Path(path.removeprefix("file://"))


def test_a_clean_of_a_log_whose_live_segment_is_gone_says_so_and_marks_it(cleaner: Cleaner, store: LogStore) -> None:
    lost = store.logs("b")[0].segments[0].path
    local(lost).unlink()

    done = run(cleaner)

    error = done.failed["b-0"]
    assert isinstance(error, LogCorrupt)
    assert str(error) == (
        f"b-0: segment {lost} (offsets 0 to 1) is missing from storage though the table lists it; put the file back "
        "from a copy of the storage"
    )
    (log,) = store.logs("b")
    assert log.uncleanable
    assert log.uncleanable.reason == str(error)
    assert [outcome.step.topic_partition.topic for outcome in done.committed] == ["a", "c"]


def test_a_clean_of_a_log_whose_live_segment_was_cut_short_names_the_file(cleaner: Cleaner, store: LogStore) -> None:
    path = local(store.logs("b")[0].segments[0].path)
    path.write_bytes(path.read_bytes()[:200])

    error = run(cleaner, "b").failed["b-0"]

    assert isinstance(error, LogCorrupt)
    assert str(path) in str(error)
    assert "try again" not in str(error)
    assert "plan again" not in str(error)


def test_an_input_that_was_replaced_and_purged_is_a_stale_plan(cleaner: Cleaner, store: LogStore) -> None:
    replaced = store.logs("b")[0].segments[0].path
    planned = cleaner.begin(["b"], new_id(), now_ms=NOW_MS, requested=True)
    assert run(cleaner, "b").committed
    local(replaced).unlink()

    done = cleaner.commit(cleaner.stage(planned))

    assert isinstance(done.failed["b-0"], StalePlan)
    assert store.logs("b")[0].uncleanable is None


@pytest.fixture
def with_watermarks(cleaner: Cleaner, store: LogStore) -> LogStore:
    """Topic w with a watermark of key k, and records of other keys behind it."""
    settings = {"cleanup.policy": "compact", "compaction.strategy": "timestamp", "delete.retention.ms": "0"}
    store.create_topic("w", 1, settings)
    old_ms = NOW_MS - 8 * DAY_MS
    for records in ([(b"k", b"1"), (b"k", None)], [(b"other", b"1"), (b"other", b"2")]):
        new = [NewRecord(key, value, old_ms + offset, 0) for offset, (key, value) in enumerate(records)]
        store.append("w", new, new_id(), NOW_MS)
        assert run(cleaner, "w").committed
    store.append("w", [NewRecord(b"k", b"late", old_ms, 0)], new_id(), NOW_MS)
    assert store.logs("w")[0].watermarks_path
    return store


def test_a_clean_of_a_log_whose_watermarks_are_gone_says_so(cleaner: Cleaner, with_watermarks: LogStore) -> None:
    path = with_watermarks.logs("w")[0].watermarks_path
    local(path).unlink()

    error = run(cleaner, "w", now_ms=NOW_MS + 2).failed["w-0"]

    assert isinstance(error, LogCorrupt)
    assert str(error).startswith(f"w-0: file {path} with its watermarks is missing from storage though the table lists")
    assert with_watermarks.logs("w")[0].uncleanable


def test_watermarks_that_are_gone_can_be_given_up(cleaner: Cleaner, with_watermarks: LogStore) -> None:
    store = with_watermarks
    local(store.logs("w")[0].watermarks_path).unlink()
    checkpoint = store.logs("w")[0].checkpoint
    with pytest.raises(LogCorrupt, match=r"live file .* is not there, and nothing was deleted: .* --adopt"):
        store.purge("w", NOW_MS + DAY_MS)
    repairer = Repairer(store)
    assert repairer.propose("w", now_ms=NOW_MS) is None
    [damage] = repairer.damage("w")
    assert "or give up its watermarks: keptlog repair w --adopt (" in damage

    proposal = repairer.propose("w", is_adoption=True, now_ms=NOW_MS)
    assert proposal
    assert (proposal.lost, proposal.plan.forgotten_watermarks, proposal.plan.went) == ({}, (0,), ())
    repairer.repair(proposal, new_id(), now_ms=NOW_MS)

    (log,) = store.logs("w")
    assert (log.watermarks_path, log.checkpoint) == (None, checkpoint)
    assert repairer.propose("w", is_adoption=True, now_ms=NOW_MS) is None
    assert repairer.damage("w") == ()
    assert run(cleaner, "w", now_ms=NOW_MS + 2).committed
    store.purge("w", NOW_MS + DAY_MS)


def test_what_another_program_has_rolled_back_is_brought_back_without_them(
    with_watermarks: LogStore, tmp_path: Path
) -> None:
    """An adoption alone would give up acknowledged records too."""
    store = with_watermarks
    (acknowledged,) = store.logs("w")
    local(acknowledged.watermarks_path).unlink()
    table = store.load_table("w")
    snapshot = table.current_snapshot()
    assert snapshot
    assert snapshot.parent_snapshot_id
    roll_back(tmp_path, snapshot.parent_snapshot_id, "w")

    repairer = Repairer(store)
    proposal = repairer.propose("w", now_ms=NOW_MS)
    assert proposal
    checks = repairer.repair(proposal, new_id(), now_ms=NOW_MS)

    assert store.logs("w")[0].segments == acknowledged.segments
    [told] = [each.description for each in checks["w-0"] if each.name == "G1"]
    assert f"file {acknowledged.watermarks_path} with its watermarks is missing" in told
    given_up = repairer.propose("w", is_adoption=True, now_ms=NOW_MS)
    assert given_up
    assert (given_up.lost, given_up.plan.forgotten_watermarks) == ({}, (0,))


def test_a_clean_of_a_log_whose_watermarks_are_damaged_says_so(cleaner: Cleaner, with_watermarks: LogStore) -> None:
    path = local(with_watermarks.logs("w")[0].watermarks_path)
    path.write_bytes(path.read_bytes()[:-30])

    error = run(cleaner, "w", now_ms=NOW_MS + 2).failed["w-0"]

    assert isinstance(error, LogCorrupt)
    assert str(path) in str(error)
    assert "or give up its watermarks: keptlog repair w --adopt (" in str(error)


@pytest.mark.parametrize("kept_bytes", [-30, 0])
def test_watermarks_that_are_damaged_can_be_given_up(
    cleaner: Cleaner, with_watermarks: LogStore, kept_bytes: int
) -> None:
    store = with_watermarks
    path = local(store.logs("w")[0].watermarks_path)
    path.write_bytes(path.read_bytes()[:kept_bytes])
    repairer = Repairer(store)
    assert repairer.propose("w", now_ms=NOW_MS) is None
    [damage] = repairer.damage("w")
    assert damage.startswith(f"w-0: {store.logs('w')[0].watermarks_path} ")
    assert "or give up its watermarks: keptlog repair w --adopt (" in damage

    proposal = repairer.propose("w", is_adoption=True, now_ms=NOW_MS)
    assert proposal
    assert (proposal.lost, proposal.plan.forgotten_watermarks) == ({}, (0,))
    repairer.repair(proposal, new_id(), now_ms=NOW_MS)

    assert store.logs("w")[0].watermarks_path is None
    assert run(cleaner, "w", now_ms=NOW_MS + 2).committed
