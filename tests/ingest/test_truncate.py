"""A log whose end went wrong is truncated, and reads on from its source as if nothing had happened."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from keptlog.errors import InvalidConfig, LogCorrupt, UnknownTopic
from keptlog.home import new_id, wall_clock_ms
from keptlog.log.record import NewRecord
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.truncations import NO_TRUNCATIONS, Truncated, Truncations
from keptlog.passes.check import CheckResult
from keptlog.passes.clean import Cleaner
from keptlog.passes.readers import Readers
from keptlog.passes.repair import Repairer
from keptlog.passes.verify import verify_log
from keptlog.table.changes.truncate import Truncation, TruncationResult
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.ingest.directories import records_of, run_import, some_batch, some_records, write_log
from tests.logs import carry_out, open_store
from tests.table.foreign import insert, set_properties

USERS = TopicPartition("users", 0)
WRONG = 2**20
"""A bit of the base offset that was flipped: nothing in the directory tells."""


def displaced(batch: bytes) -> bytes:
    return struct.pack(">q", struct.unpack_from(">q", batch)[0] | WRONG) + batch[8:]


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    """A topic whose newest batch was taken at a wrong offset; the directory is whole again, and has grown."""
    store, directory = open_store(tmp_path / "home"), tmp_path / "logs"
    write_log(directory, "users-0", [some_batch(0), some_batch(10), displaced(some_batch(20))])
    assert not run_import(store, directory, "damaged").failed
    assert store.logs("users")[0].log_end_offset == WRONG + 30
    write_log(directory, "users-0", [some_batch(0), some_batch(10), some_batch(20), some_batch(30)])
    return store


def truncated(store: LogStore, offset: int, name: TopicPartition = USERS) -> TruncationResult:
    return Truncation(name, offset, new_id(), new_id).commit(store.committer, store.files)


def broken_checks(store: LogStore) -> list[CheckResult]:
    results = verify_log(store, store.logs("users")[0], wall_clock_ms())
    return [each for each in results if not each.passed]


def adopt(store: LogStore, home: Path) -> None:
    """Take the table as another program has left it."""
    insert(home, topic="users")
    proposal = Repairer(store).propose("users", is_adoption=True, now_ms=wall_clock_ms())
    assert proposal
    Repairer(store).repair(proposal, new_id(), now_ms=wall_clock_ms())


def clean(store: LogStore) -> None:
    cleaner = Cleaner(store, in_process_engine(store.files))
    now_ms = wall_clock_ms() + 30 * 86_400_000
    assert not carry_out(cleaner, cleaner.plan(["users"], now_ms=now_ms, requested=True)).failed


def test_a_healthy_copy_is_refused_with_the_command_that_puts_the_log_right(store: LogStore, tmp_path: Path) -> None:
    stopped = run_import(store, tmp_path / "logs", "again").failed
    assert "remove what lies beyond here and read on (keptlog truncate users-0 40)" in str(stopped["users-0"])
    preview = Truncation(USERS, 40, new_id(), new_id).preview(store.committer, store.files)
    assert store.logs("users")[0].log_end_offset == WRONG + 30
    assert truncated(store, 40) == preview == TruncationResult(USERS, WRONG + 30, 20, 10)
    assert records_of(store, "users") == some_records(0, 20)
    assert truncated(store, 40) == TruncationResult(USERS, 20, 20, 0)
    assert run_import(store, tmp_path / "logs", "once-more").failed == {}
    assert records_of(store, "users") == some_records(0, 40)
    assert broken_checks(store) == []
    clean(store)
    assert broken_checks(store) == []


@pytest.mark.parametrize(("offset", "end"), [(15, 15), (10, 10), (3, 3), (0, 0)])
def test_a_log_is_truncated_anywhere_and_reads_the_same_again(
    store: LogStore, tmp_path: Path, offset: int, end: int
) -> None:
    assert truncated(store, offset).log_end_offset == end
    assert records_of(store, "users") == some_records(0, end)
    assert run_import(store, tmp_path / "logs", "again").failed == {}
    assert records_of(store, "users") == some_records(0, 40)
    assert broken_checks(store) == []


def test_a_log_is_not_truncated_where_what_was_done_would_be_undone(store: LogStore) -> None:
    Readers(store, new_id).add("users", "search", now_ms=wall_clock_ms())
    Readers(store, new_id).commit("users", "search", {0: 21})
    with pytest.raises(InvalidConfig, match=r"1 registered reader would miss .*keptlog reader remove users search"):
        truncated(store, 25)
    Readers(store, new_id).remove("users", "search")
    assert truncated(store, 25).log_end_offset == 20
    clean(store)
    with pytest.raises(InvalidConfig, match=r"it is cleaned up to offset 20, .*--into users-again"):
        truncated(store, 19)


def test_a_restore_that_is_beyond_it_is_to_go_to_another_topic_afterwards(store: LogStore) -> None:
    for reader in ("restore-people-id", "search"):
        Readers(store, new_id).add("users", reader, now_ms=wall_clock_ms())
        Readers(store, new_id).commit("users", reader, {0: 21})
    with pytest.raises(InvalidConfig, match="2 registered readers would miss") as refused:
        truncated(store, 25)
    assert "keptlog reader remove users search, and then add it" in str(refused.value)
    assert "keptlog reader remove users restore-people-id, and then restore to another --topic" in str(refused.value)


def test_a_log_remembers_where_it_was_truncated(store: LogStore, tmp_path: Path) -> None:
    assert store.logs("users")[0].truncations == NO_TRUNCATIONS
    truncated(store, 40)
    assert store.logs("users")[0].truncations == Truncations((Truncated(1, 20),))
    truncated(store, 40)
    run_import(store, tmp_path / "logs", "again")
    truncated(store, 30)
    assert store.logs("users")[0].truncations == Truncations((Truncated(1, 20), Truncated(2, 30)))
    clean(store)
    assert store.logs("users")[0].truncations.count == 2


def test_a_list_of_truncations_that_somebody_spoilt_is_named(store: LogStore) -> None:
    store.load_table("users").transaction().set_properties({"log.p0.truncations": "two"}).commit_transaction()
    with pytest.raises(LogCorrupt, match=r"property log.p0.truncations='two' is no list of truncations"):
        store.logs("users")


def test_what_can_not_be_read_again_is_not_truncated(store: LogStore) -> None:
    store.create_topic("own", 1, {})
    store.append("own", [NewRecord(b"a", b"1", wall_clock_ms(), 0)], new_id(), wall_clock_ms())
    with pytest.raises(InvalidConfig, match="own-0 can't be truncated to offset 0: its records were appended"):
        truncated(store, 0, TopicPartition("own", 0))
    with pytest.raises(UnknownTopic, match="topic 'users' has no partition 7"):
        truncated(store, 0, TopicPartition("users", 7))


def test_a_truncation_that_removed_nothing_is_done_too_and_its_run_id_removes_nothing_later(
    store: LogStore, tmp_path: Path
) -> None:
    truncated(store, 20)
    again = Truncation(USERS, 20, "run", new_id, is_new_run=False)
    assert again.commit(store.committer, store.files) == TruncationResult(USERS, 20, 20, 0)
    assert run_import(store, tmp_path / "logs", "again").failed == {}
    done = Truncation(USERS, 20, "run", new_id, is_new_run=False).commit(store.committer, store.files)
    assert done == TruncationResult(USERS, 20, 20, 0, is_repeated=True)
    assert records_of(store, "users") == some_records(0, 40)


def test_a_log_is_not_truncated_into_what_a_broken_off_clean_has_begun_with(tmp_path: Path) -> None:
    """The old record of a key is gone there, for a later one that the truncation would take too."""
    store, directory = open_store(tmp_path / "home"), tmp_path / "logs"
    write_log(directory, "users-0", [some_batch(0), some_batch(10), some_batch(20), some_batch(30)])
    assert not run_import(store, directory, "first").failed
    cleaned_to = store.logs("users")[0].log_end_offset
    table = store.load_table("users")
    with table.transaction() as changes:
        changes.set_properties({"log.p0.cleaning-to": str(cleaned_to)})
    with pytest.raises(InvalidConfig, match=f"it is cleaned up to offset {cleaned_to}"):
        truncated(store, 20)


def test_a_log_is_not_truncated_into_what_was_clean_before_a_repair_gave_up_its_checkpoint(tmp_path: Path) -> None:
    home, directory = tmp_path / "home", tmp_path / "logs"
    store = open_store(home)
    write_log(directory, "users-0", [some_batch(0), some_batch(10), some_batch(20)])
    assert not run_import(store, directory, "first").failed
    clean(store)
    cleaned_to = store.logs("users")[0].checkpoint
    adopt(store, home)
    with store.load_table("users").transaction() as changes:
        changes.set_properties({"log.p0.first-dirty-offset": "10"})  # as a clean that ends there
    with pytest.raises(InvalidConfig, match=f"it is cleaned up to offset {cleaned_to}"):
        truncated(store, 20)


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_a_log_that_was_never_cleaned_is_truncated_after_a_repair_too(
    store: LogStore, tmp_path: Path, policy: str
) -> None:
    """It was refused, as cleaned up to offset 9223372036854775807."""
    store.alter_topic("users", {"cleanup.policy": policy})
    adopt(store, tmp_path / "home")
    assert truncated(store, 40) == TruncationResult(USERS, WRONG + 30, 20, 10)
    assert run_import(store, tmp_path / "logs", "again").failed == {}
    assert records_of(store, "users") == some_records(0, 40)


def test_a_compacted_log_whose_repair_kept_no_note_of_how_far_it_was_cleaned_is_not_truncated(
    store: LogStore, tmp_path: Path
) -> None:
    adopt(store, tmp_path / "home")
    set_properties(tmp_path / "home", {"log.p0.cleaning-to": None}, "users")  # as an older keptlog
    with pytest.raises(InvalidConfig, match="to offset 40: an older keptlog has repaired it, and kept no note"):
        truncated(store, 40)
    store.alter_topic("users", {"cleanup.policy": "delete"})
    assert truncated(store, 40) == TruncationResult(USERS, WRONG + 30, 20, 10)


def test_a_log_that_was_cleaned_before_its_repair_is_not_truncated_after_its_policy_is_altered(
    store: LogStore, tmp_path: Path
) -> None:
    clean(store)
    adopt(store, tmp_path / "home")
    set_properties(tmp_path / "home", {"log.p0.cleaning-to": None}, "users")  # as an older keptlog
    store.alter_topic("users", {"cleanup.policy": "delete"})
    with pytest.raises(InvalidConfig, match="to offset 40: an older keptlog has repaired it, and kept no note"):
        truncated(store, 40)


def test_a_run_that_comes_again_after_a_truncation_reads_again_what_it_had_read(
    store: LogStore, tmp_path: Path
) -> None:
    truncated(store, 20)
    for _ in range(3):
        assert run_import(store, tmp_path / "logs", "day-2").failed == {}
        assert records_of(store, "users") == some_records(0, 40)
        truncated(store, 30)
