"""What can't be undone can be previewed, and is asked about on a terminal; a script is never asked."""

from __future__ import annotations

import io
import os
import pty
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from keptlog.cli import retention
from keptlog.errors import StorageUnavailable
from keptlog.home import open_home
from keptlog.log.record import NewRecord
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.iso_time import iso_time
from keptlog.log.words.units import size
from keptlog.table.purge_preview import PurgePreview, preview_purge
from keptlog.table.removal.hidden import HiddenFiles
from tests.cli.conftest import Outcome, Run
from tests.table.foreign import table_of

Type = Callable[[str], None]
HOUR_MS = 3_600_000


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Type]:
    """Standard input is a terminal, at which somebody types."""
    ours, its = pty.openpty()
    with os.fdopen(its) as stdin, os.fdopen(ours, "wb", buffering=0) as keyboard:
        monkeypatch.setattr("sys.stdin", stdin)

        def type_in(text: str) -> None:
            keyboard.write(text.encode())

        yield type_in


@pytest.fixture
def replaced(home: Path) -> Path:
    """Two segments are gone from a log of three, and an orphan lies beside it; a purge is due in an hour."""
    store = open_home().store
    now_ms = time.time_ns() // 1_000_000
    store.create_topic("users", 2, {"cleanup.policy": "compact"})
    for offset in range(3):
        store.append("users", [NewRecord(b"a", b"1", now_ms, 0)], f"append-{offset}", now_ms)
    store.delete_records(TopicPartition("users", 0), 2, "deletion")
    (home / "warehouse" / "keptlog" / "users" / "data" / "left.parquet").write_bytes(b"orphan")
    return home


def stored(home: Path) -> dict[str, int]:
    """The files of the table with their sizes."""
    found = (path for path in (home / "warehouse").rglob("*") if path.is_file() and path.suffix != ".json")
    return {path.name: path.stat().st_size for path in found}


def in_two_days(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(time.time_ns() // 1_000_000 + 48 * HOUR_MS))


def test_a_purge_deletes_just_what_its_preview_has_told(
    keptlog: Run, replaced: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = keptlog("purge", "--dry-run")
    assert (early.code, early.out) == (0, "users: nothing to purge\n")
    in_two_days(monkeypatch)
    before = stored(replaced)

    told = keptlog("purge", "--dry-run", "--json").json["topics"]["users"]
    assert "would expire" in keptlog("purge", "users", "--dry-run").out

    assert stored(replaced) == before
    receipt = open_home().purger.purge(now_ms=int(os.environ["KEPTLOG_NOW_MS"])).receipts["users"]
    assert told["snapshots"] == len(receipt.expired_snapshots) == 3
    assert told["segments"] == len(receipt.deleted_files) == 2
    assert told["files"] == len(receipt.deleted_files) + len(receipt.deleted_metadata) > 2
    assert told["orphans"] == len(receipt.deleted_orphans) == 1
    gone = before.keys() - stored(replaced).keys()
    assert len(gone) == told["files"] + told["orphans"]
    assert told["bytes"] == receipt.deleted_bytes == sum(before[name] for name in gone)
    # The fence before the orphan was a snapshot more.
    assert keptlog("purge", "--dry-run", "--json").json["topics"]["users"]["snapshots"] == 1
    keptlog("purge", "--yes")
    assert keptlog("purge", "--dry-run").out == "users: nothing to purge\n"


def test_a_preview_refuses_what_the_purge_refuses(
    keptlog: Run, replaced: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_two_days(monkeypatch)
    next((replaced / "warehouse" / "keptlog" / "users" / "data").rglob("*append-2*")).unlink()

    preview, really = keptlog("purge", "--dry-run"), keptlog("purge")

    assert (preview.code, really.code) == (1, 1)
    assert "is not there, and nothing was deleted" in preview.err
    assert preview.err == really.err


def test_in_a_copy_of_a_home_previews_refuse_what_is_refused(
    keptlog: Run, replaced: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copytree(replaced, replaced.parent / "copy")
    monkeypatch.setenv("KEPTLOG_HOME", str(copy))

    for command in (("purge",), ("delete-records", "users", "0", "3"), ("erase", "users", "--key", "a")):
        preview, really = keptlog(*command, "--dry-run"), keptlog(*command)
        assert (preview.code, really.code) == (2, 2)
        assert preview.err == really.err
        assert (preview.out, really.out) == ("", "")


def test_a_preview_knows_that_its_run_has_deleted_before(keptlog: Run, replaced: Path) -> None:
    assert replaced
    told = keptlog("delete-records", "users", "0", "--run-id", "deletion", "--dry-run", "--json", "--", "-1").json

    assert (told["log_start_offset_before"], told["log_start_offset"], told["segments"]) == (2, 2, 0)


def test_a_preview_of_a_topic_that_can_not_be_purged_says_why(keptlog: Run, replaced: Path) -> None:
    segment = next((replaced / "warehouse" / "keptlog" / "users" / "data").rglob("*append-2*"))
    refused = keptlog("purge", "usrs", "--dry-run")
    assert (refused.code, refused.err) == (2, "keptlog: there is no topic 'usrs': did you mean users?\n")
    for each in (replaced / "warehouse" / "keptlog" / "users" / "metadata").glob("*.avro"):
        each.write_bytes(b"damaged")
    damaged = keptlog("purge", "--dry-run")
    assert damaged.code == 1
    assert damaged.err.startswith("keptlog: users: ")
    assert segment.exists()


def declined_purge(keptlog: Run, terminal: Type) -> Outcome:
    terminal("n\n")
    refused = keptlog("purge")
    assert refused.code == 130
    return refused


def test_on_a_terminal_a_purge_tells_and_asks(
    keptlog: Run, replaced: Path, terminal: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_two_days(monkeypatch)
    before = stored(replaced)
    refused = declined_purge(keptlog, terminal)
    assert "3 snapshots would expire" in refused.err
    assert "delete these files for good?" in refused.err
    assert stored(replaced) == before
    terminal("y\n")
    assert keptlog("purge").code == 0
    assert "left.parquet" not in stored(replaced)
    keptlog("purge", "--yes")
    again = keptlog("purge")
    assert (again.code, "for good?" in again.err) == (0, False)


DECLINED = "keptlog: nothing was changed: the answer was not yes\n"


@pytest.mark.parametrize(
    ("typed", "line"), [("n\n", "[y/N]: "), ("\n", "[y/N]: "), ("\x04", "[y/N]: \n")], ids=["no", "enter", "Ctrl-D"]
)
def test_who_does_not_say_yes_is_told_that_nothing_was_changed_in_a_line_of_its_own(
    keptlog: Run, replaced: Path, terminal: Type, typed: str, line: str
) -> None:
    """It was told of uncommitted work that a purge would sweep: the very thing that somebody had just refused."""
    terminal(typed)
    refused = keptlog("topic", "delete", "users")
    assert (refused.code, refused.err.endswith(line + DECLINED)) == (130, True), refused.err
    assert keptlog("status", "users", "--json").code == 0


def test_a_no_that_is_piped_in_is_told_alike_and_as_json_too(
    keptlog: Run, replaced: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    refused = keptlog("topic", "delete", "users", "--json")
    assert (refused.code, refused.err.endswith(DECLINED)) == (130, True)
    [told] = refused.json["errors"]
    assert (told["kind"], told["action"]) == ("Declined", "fix_config")


def test_who_is_asked_about_a_topic_is_told_how_much_would_go(
    keptlog: Run, replaced: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    (live,) = (each for log in open_home().store.logs("users") for each in log.segments)
    told = keptlog("topic", "delete", "users").err
    assert told.startswith(f"users: 1 record in 2 logs ({size(live.size_bytes)}) would go\ndelete topic users and all")
    for each in (replaced / "warehouse" / "keptlog" / "users" / "metadata").glob("*.avro"):
        each.write_bytes(b"damaged")
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    damaged = keptlog("topic", "delete", "users").err
    assert damaged.startswith("users: records of which nobody can tell how many they are (")


def tags(home: Path) -> set[str]:
    return set(table_of(home, "users").metadata.refs) - {"main"}


def tag_for_an_hour(home: Path) -> None:
    table = table_of(home, "users")
    current = table.current_snapshot()
    assert current
    table.manage_snapshots().create_tag(current.snapshot_id, "audit", max_ref_age_ms=HOUR_MS).commit()


def test_a_purge_that_drops_a_tag_alone_tells_it_and_asks(
    keptlog: Run, replaced: Path, terminal: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_two_days(monkeypatch)
    for _ in range(2):
        keptlog("purge", "--yes")
    [current] = table_of(replaced, "users").metadata.snapshots
    tag_for_an_hour(replaced)
    until_ms = current.timestamp_ms + HOUR_MS
    tag = {"kind": "tag", "name": "audit", "kept_until_ms": until_ms}
    said = f"tag audit, whose retention ended {iso_time(until_ms)}"
    assert keptlog("purge", "--dry-run").out == f"users: {said} would be dropped\n"
    assert keptlog("purge", "--dry-run", "--json").json["topics"]["users"]["refs"] == [tag]
    refused = declined_purge(keptlog, terminal)
    assert f"users: {said} would be dropped" in refused.err
    assert "delete these files, tags and branches for good?" in refused.err
    assert tags(replaced) == {"audit"}
    terminal("y\n")
    assert f"users: dropped {said}\n" in keptlog("purge").out
    assert tags(replaced) == set()
    tag_for_an_hour(replaced)
    assert keptlog("purge", "--json", "--yes").json["topics"]["users"]["dropped_refs"] == [tag]


def test_on_a_terminal_a_purge_asks_also_where_the_storage_does_not_tell_what_would_go(
    keptlog: Run, replaced: Path, terminal: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The purge would be told, a moment later."""
    in_two_days(monkeypatch)
    before, really = stored(replaced), preview_purge
    outages = iter([StorageUnavailable("its folder can't be listed")])

    def preview_when_back(*arguments: Any) -> PurgePreview:
        for outage in outages:
            raise outage
        return really(*arguments)

    monkeypatch.setattr("keptlog.table.purge_preview.preview_purge", preview_when_back)
    refused = declined_purge(keptlog, terminal)
    assert "users: its folder can't be listed" in refused.err
    assert "also where that can't be told now?" in refused.err
    assert stored(replaced) == before


def test_on_a_terminal_a_purge_asks_also_where_a_bucket_does_not_list_what_lies_hidden(
    keptlog: Run, replaced: Path, terminal: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    keptlog("purge", "--yes")
    answers = iter([HiddenFiles(unread=("versions below it can't be listed",))])
    monkeypatch.setattr("keptlog.table.purge_preview.hidden_below", lambda *_: next(answers))
    refused = declined_purge(keptlog, terminal)
    assert "users: nothing to purge was seen; not looked at: versions below it can't be listed" in refused.err
    assert "also where that can't be told now?" in refused.err


def test_on_a_terminal_records_are_deleted_once_somebody_says_so(keptlog: Run, replaced: Path, terminal: Type) -> None:
    terminal("n\n")
    refused = keptlog("delete-records", "users-0", "3")
    assert refused.code == 130
    assert "users-0 would begin at offset 3 instead of 2; 1 segment (" in refused.err
    assert keptlog("status", "users-0", "--json").json["logs"][0]["log_start_offset"] == 2
    assert keptlog("delete-records", "users-0", "3", "--yes").err == ""
    assert keptlog("status", "users-0", "--json").json["logs"][0]["log_start_offset"] == 3


@pytest.mark.parametrize("run", [(), ("--run-id", "run")])
def test_what_is_appended_while_it_is_asked_about_all_records_stays(
    keptlog: Run, replaced: Path, monkeypatch: pytest.MonkeyPatch, run: tuple[str, ...]
) -> None:
    """It went with them, and was neither shown nor meant."""

    def slowly(_: str) -> None:
        open_home().store.append("users", [NewRecord(b"b", b"2", 0, 0)], "meanwhile", 0)

    monkeypatch.setattr(retention, "is_asked", lambda **_: True)
    monkeypatch.setattr(retention, "confirm", slowly)
    done = keptlog("delete-records", "users-0", *run, "--", "-1")
    assert "users-0 would begin at offset 3 instead of 2; 1 segment (" in done.err
    assert "users-0 begins at offset 3 now; 1 segment (" in done.out
    assert [record.offset for _, record in open_home().store.read("users")] == [3]
    monkeypatch.setattr(retention, "is_asked", lambda **_: False)
    assert keptlog("delete-records", "users-0", "--", "-1").code == 0
    assert list(open_home().store.read("users")) == []


def test_a_script_is_not_asked(keptlog: Run, replaced: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_two_days(monkeypatch)
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        assert keptlog("delete-records", "users", "0", "3").err == ""
        assert keptlog("purge").err == ""
    assert "left.parquet" not in stored(replaced)


def test_a_preview_of_a_deletion_of_records_deletes_none(keptlog: Run, replaced: Path) -> None:
    told = keptlog("delete-records", "users-0", "3", "--dry-run", "--json").json
    assert (told["log_start_offset_before"], told["log_start_offset"], told["segments"]) == (2, 3, 1)
    assert "already" in keptlog("delete-records", "users-0", "2", "--dry-run").out
    assert keptlog("status", "users-0", "--json").json["logs"][0]["log_start_offset"] == 2
