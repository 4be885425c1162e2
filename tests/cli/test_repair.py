"""``keptlog repair``, and what the other commands say of a topic that needs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyiceberg.manifest import ManifestContent
from pyiceberg.types import StringType

from keptlog.cli import cli
from keptlog.home import open_home
from keptlog.passes.repair import Repairer
from keptlog.table.metadata.state import ERASURES
from keptlog.table.store import LogStore
from tests.broken_topics import cut_in_half, first_manifest, manifest_list
from tests.cli.conftest import Run
from tests.table.delete_files import delete_by_position
from tests.table.foreign import current_id, delete_rows, expire, insert, roll_back, rows_at, set_properties, table_of

WHY = "topic users was changed by somebody else, and nothing is written to it: it was rolled back from snapshot "


@pytest.fixture
def users(keptlog: Run, lines: Callable[..., str], home: Path) -> int:
    """A topic with three records in two segments, and one that is sound; gives the snapshot of the first segment."""
    for topic in ("orders", "users"):
        assert keptlog("topic", "create", topic, "--config", "cleanup.policy=compact").code == 0
        two = lines({"key": "a", "value": "1"}, {"key": "b", "value": "1"})
        assert keptlog("append", topic, "--file", two).code == 0
    first = current_id(home, "users")
    assert keptlog("append", "users", "--file", lines({"key": "a", "value": "2"})).code == 0
    return first


def offsets(keptlog: Run) -> list[int]:
    return [row["offset"] for row in keptlog("read", "users", "--json").json_lines]


def test_a_rolled_back_topic_is_named_by_every_command_that_judges_and_stops_no_other(
    keptlog: Run, home: Path, users: int
) -> None:
    roll_back(home, users, "users")
    for command in ("status", "plan", "verify", "retain", "purge"):
        done = keptlog(command)
        assert (done.code, WHY in done.err) == (1, True), command
        assert done.err.startswith("keptlog: users: topic users") or done.err.startswith("keptlog: topic users"), (
            command
        )
        assert "keptlog repair users --dry-run shows what can be done" in done.err
        assert "users-0" not in done.out
    assert "orders-0" in keptlog("status").out
    assert "orders-0" in keptlog("verify", "--full").out
    for refused in (("explain", "users", "0"), ("topic", "alter", "users", "--config", "segment.ms=7")):
        done = keptlog(*refused)
        assert (done.code, WHY in done.err, done.out) == (1, True, "")


def test_reading_a_rolled_back_topic_is_allowed(keptlog: Run, home: Path, users: int) -> None:
    roll_back(home, users, "users")
    assert offsets(keptlog) == [0, 1]
    assert keptlog("files", "users").out.count(".parquet") == 1
    assert keptlog("topic", "describe", "users").code == 0
    assert keptlog("topic", "list").code == 0


def test_an_append_is_refused_before_a_record_is_staged(
    keptlog: Run, home: Path, users: int, lines: Callable[..., str]
) -> None:
    roll_back(home, users, "users")
    before = sorted(home.rglob("*.parquet"))
    done = keptlog("append", "users", "--file", lines({"key": "c", "value": "1"}))
    assert (done.code, WHY in done.err) == (1, True)
    assert sorted(home.rglob("*.parquet")) == before


def test_a_sound_topic_has_nothing_to_repair(keptlog: Run, users: int) -> None:
    del users
    done = keptlog("repair", "users")
    said = "users: no other program has changed its logs, so there is nothing to repair; its files are there ("
    assert (done.code, done.out) == (0, f"{said}keptlog verify reads them)\n")
    told = keptlog("repair", "users", "--json").json
    assert (told["is_repaired"], told["broken"]) == (False, [])
    assert keptlog("repair", "nobody").code == 2


@pytest.mark.parametrize(
    "damage", [Path.unlink, cut_in_half, lambda path: path.write_bytes(b"")], ids=["gone", "half", "empty"]
)
@pytest.mark.parametrize("which", [manifest_list, first_manifest], ids=["manifest list", "manifest"])
def test_a_topic_whose_metadata_is_damaged_is_not_told_to_be_sound(
    keptlog: Run, home: Path, users: int, which: Callable[[LogStore, str], Path], damage: Callable[[Path], object]
) -> None:
    del users
    path = which(open_home(home).store, "users")
    damage(path)
    done = keptlog("repair", "users")
    assert (done.code, done.out) == (1, "")
    assert str(path) in done.err
    assert "put the file back from a copy of the storage" in done.err


@pytest.mark.parametrize(
    "damage", [Path.unlink, cut_in_half, lambda path: path.write_bytes(b"")], ids=["gone", "half", "empty"]
)
def test_a_topic_with_a_lost_segment_is_not_told_to_be_sound(
    keptlog: Run, home: Path, users: int, damage: Callable[[Path], object]
) -> None:
    del users
    damage(min((home / "warehouse/keptlog/users").rglob("*.parquet")))
    done = keptlog("repair", "users")
    first, what = done.out.splitlines()
    assert (done.code, done.err) == (1, "")
    assert first == "users: no other program has changed its logs, so there is nothing to repair, but:"
    assert "put the file back from a copy of the storage" in what
    told = keptlog("repair", "users", "--json")
    assert (told.code, told.json["is_repaired"], told.json["broken"]) == (1, False, [what.strip()])


@pytest.mark.parametrize(
    ("name", "said"), [(ERASURES, "is no name of a file"), ("log.reader.x", "no registration of a reader")]
)
def test_a_topic_whose_erasures_or_readers_can_t_be_told_is_not_told_to_be_sound(
    keptlog: Run, home: Path, users: int, name: str, said: str
) -> None:
    del users
    assert keptlog("erase", "users", "--key", "a", "--yes").code == 0
    set_properties(home, {name: ""}, "users")
    done = keptlog("repair", "users")
    first, what = done.out.splitlines()
    assert (done.code, first.endswith("nothing to repair, but:")) == (1, True)
    assert said in what
    told = keptlog("repair", "users", "--json")
    assert (told.code, told.json["is_repaired"], told.json["broken"]) == (1, False, [what.strip()])


def test_whoever_meets_damage_that_no_other_program_did_does_not_name_repair(
    keptlog: Run, home: Path, users: int, lines: Callable[..., str]
) -> None:
    del users
    set_properties(home, {"log.p0.log-end-offset": "2"}, "users")
    said = "users-0: segment file://"
    for command in (("status",), ("verify",), ("doctor", "--no-probes"), ("read", "users"), ("repair", "users")):
        done = keptlog(*command)
        told = done.out + done.err
        assert (done.code, said in told) == (1, True), command
        assert "put the metadata back from a copy of the storage" in told
        assert "keptlog repair" not in told


def test_delete_files_that_a_repair_takes_out_are_told(keptlog: Run, home: Path, users: int) -> None:
    del users
    paths = sorted(delete_by_position(home, "users") for _ in range(2))
    dry = keptlog("repair", "users", "--dry-run")
    assert dry.code == 0
    assert "  files that come back: 0, that go: 0\n  2 delete files of other programs go, " in dry.out
    assert json.loads(keptlog("repair", "users", "--dry-run", "--json").out)["delete_files_gone"] == paths


def test_a_repair_needs_no_manifest_of_delete_files(keptlog: Run, home: Path, users: int) -> None:
    delete_by_position(home, "users")
    snapshot = table_of(home, "users").current_snapshot()
    assert snapshot
    manifests = snapshot.manifests(table_of(home, "users").io)
    [of_deletes] = [each.manifest_path for each in manifests if each.content == ManifestContent.DELETES]
    Path(of_deletes.removeprefix("file://")).unlink()
    dry = keptlog("repair", "users", "--dry-run", "--json")
    assert (dry.code, dry.json["delete_files_gone"]) == (0, [of_deletes])
    assert keptlog("repair", "users", "--yes").code == 0
    assert keptlog("verify", "users").code == 0
    assert keptlog("repair", "users").code == 0
    assert offsets(keptlog) == [0, 1, 2]


def test_a_repair_tells_what_happened_and_brings_the_records_back(keptlog: Run, home: Path, users: int) -> None:
    last = current_id(home, "users")
    roll_back(home, users, "users")
    insert(home, 50, topic="users")

    dry = keptlog("repair", "users", "--dry-run")
    assert dry.code == 0
    assert dry.out.startswith(f"users: it was rolled back from snapshot {last} of ")
    assert "  undone: snapshot " in dry.out
    assert "append, 1 file added\n" in dry.out
    assert dry.out.endswith("  files that come back: 1, that go: 1\n  no acknowledged record is lost\n")
    done = keptlog("repair", "users")
    assert (done.code, done.out) == (0, dry.out + "users is repaired and verified\n")
    assert offsets(keptlog) == [0, 1, 2]
    assert keptlog("verify").code == keptlog("status").code == 0


def test_an_adoption_says_what_is_lost_and_asks(keptlog: Run, home: Path, users: int) -> None:
    roll_back(home, users, "users")
    dry = keptlog("repair", "users", "--adopt", "--dry-run")
    assert "  users-0: LOST, 1 acknowledged offset: 2\n" in dry.out
    assert dry.out.endswith("  the next clean judges everything again\n")

    before = current_id(home, "users")
    refused = CliRunner().invoke(cli, ["repair", "users", "--adopt"], input="n\n")
    assert refused.exit_code == 1
    assert "adopt topic users as it is now, for good? [y/N]" in refused.output
    assert current_id(home, "users") == before

    done = keptlog("repair", "users", "--adopt", "--yes")
    assert (done.code, done.out) == (0, dry.out + "users is repaired and verified\n")
    assert offsets(keptlog) == [0, 1]
    assert "judged from 0 again" in keptlog("explain", "users", "0").out
    assert keptlog("topic", "describe", "users", "--json").json["logs"][0]["first_dirty_offset"] is None


def test_an_adoption_of_what_others_wrote_names_the_offsets(keptlog: Run, home: Path, users: int) -> None:
    del users
    delete_rows(home, "offset = 0", "users")
    done = keptlog("repair", "users", "--adopt", "--yes")
    assert "  users-0: offsets 1 are as other files have them, whatever was changed in those\n" in done.out
    assert "  users-0: LOST, 1 acknowledged offset: 0\n" in done.out
    assert done.code == 0


def test_an_adoption_names_the_columns_that_a_clean_drops(keptlog: Run, home: Path, users: int) -> None:
    del users
    with table_of(home, "users").update_schema() as changed:
        changed.add_column("note", StringType())
    notes = pa.array(["one", None, "three"])
    table_of(home, "users").append(rows_at(3, 4, 5).append_column("note", notes))
    done = keptlog("repair", "users", "--adopt", "--dry-run")
    assert "  column note: 2 values in adopted files, and no topic has that column: readers of the table " in done.out
    told = keptlog("repair", "users", "--adopt", "--yes", "--json").json
    assert (told["other_columns"], told["is_repaired"]) == ({"note": 2}, True)


def test_a_repair_in_json(keptlog: Run, home: Path, users: int) -> None:
    roll_back(home, users, "users")
    told = keptlog("repair", "users", "--adopt", "--json", "--dry-run").json
    assert (told["is_repaired"], told["is_adoption"], told["lost_offsets"], told["is_lost_exact"]) == (
        False,
        True,
        {"users-0": [[2, 2]]},
        True,
    )
    done = keptlog("repair", "users", "--json").json
    assert (done["is_repaired"], done["is_adoption"], done["lost_offsets"], done["broken"]) == (True, False, {}, [])
    assert (done["current_snapshot"], len(done["files_back"]), done["files_gone"]) == (users, 1, [])


def test_what_can_not_be_adopted_is_refused_with_the_other_way(keptlog: Run, home: Path, users: int) -> None:
    del users
    insert(home, 1, topic="users")
    done = keptlog("repair", "users", "--adopt", "--yes")
    assert done.code == 1
    assert "another program wrote it; keptlog repair users brings back what was acknowledged" in done.err
    assert keptlog("repair", "users").code == 0


@pytest.mark.parametrize("act", [delete_by_position, lambda home, topic: insert(home, 1, topic=topic)])
def test_what_can_neither_be_brought_back_nor_adopted_names_no_command_that_does_not_help(
    keptlog: Run, home: Path, users: int, act: Callable[[Path, str], object]
) -> None:
    recorded = current_id(home, "users")
    act(home, "users")
    expire(home, users, recorded, topic="users")
    for command in (("repair", "users"), ("repair", "users", "--adopt", "--yes"), ("read", "users")):
        done = keptlog(*command)
        assert done.code == 1
        assert (
            "another program wrote it; no repair can bring back what was acknowledged, as snapshots expired: put back "
            "a whole backup, catalog and files, by which every topic goes back to its time, or put it right with"
        ) in done.err
        assert "and then take the table as it is: keptlog repair users --adopt" in done.err


def test_the_help_says_that_an_adoption_alone_asks(keptlog: Run) -> None:
    told = " ".join(keptlog("repair", "--help").out.split())
    assert "Do not ask before --adopt. Required there without a terminal." in told
    assert "Required where there is no terminal" not in told


@pytest.mark.parametrize("mine", [[], ["--adopt", "--yes"], ["--adopt", "--yes", "--json"]])
def test_a_repair_that_another_one_overtakes_says_so(
    keptlog: Run, home: Path, users: int, monkeypatch: pytest.MonkeyPatch, mine: list[str]
) -> None:
    roll_back(home, users, "users")
    meanwhile = [] if mine else ["--adopt", "--yes"]
    really = Repairer.repair

    def overtaken(repairer: Repairer, *what: Any, **how: Any) -> object:
        monkeypatch.setattr(Repairer, "repair", really)
        assert keptlog("repair", "users", *meanwhile).code == 0
        return really(repairer, *what, **how)

    monkeypatch.setattr(Repairer, "repair", overtaken)
    done = keptlog("repair", "users", *mine)
    assert done.code == 1
    how = "mended it in another way" if mine else "adopted it meanwhile, which may have lost records"
    assert f"users needs no repair any more: somebody else has {how}; nothing was done now" in done.err
    assert "is repaired" not in done.out
