"""A catalog that was lost, or put back to an older time, names again what the storage has of topics and receipts."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.errors import StalePlan
from keptlog.home import open_home
from keptlog.log.record import NewRecord
from keptlog.table.catalogs.embedded_catalog import begin_anew
from keptlog.table.registrar import Registrar
from tests.cli.conftest import Run
from tests.table.stores import COMPACTED

Append = Callable[..., None]


@pytest.fixture
def append(home: Path) -> Append:
    """``append("a", "b")``: a commit with a record of each key."""
    open_home().store.create_topic("users", 1, COMPACTED | {"segment.ms": "1", "file.delete.delay.ms": "0"})

    def some(*keys: str) -> None:
        open_home().append("users", [NewRecord(each.encode(), b"1", 1) for each in keys])

    return some


@pytest.fixture
def put_back(home: Path, append: Append) -> Callable[[], None]:
    """The catalog as it is now comes back."""
    append("ann")
    old = home.parent / "old.db"
    shutil.copy(home / "catalog.db", old)

    def come_back() -> None:
        shutil.copy(old, home / "catalog.db")

    return come_back


def _keys(keptlog: Run) -> list[str]:
    return [each["key"] for each in keptlog("read", "users").json_lines]


def _metadata(home: Path) -> list[Path]:
    return sorted((home / "warehouse/keptlog/users/metadata").glob("*.metadata.json"))


def test_what_was_acknowledged_since_a_backup_of_the_catalog_is_there_again(
    keptlog: Run, put_back: Callable[[], None], append: Append
) -> None:
    append("bob")
    append("cy")
    put_back()
    assert _keys(keptlog) == ["ann"]
    previewed = keptlog("topic", "register", "users", "--dry-run")
    assert previewed.code == 0
    assert "  users-0: would end at offset 3, not 1" in previewed.out.splitlines()
    assert _keys(keptlog) == ["ann"]
    assert keptlog("topic", "register", "users", "--yes").code == 0
    assert _keys(keptlog) == ["ann", "bob", "cy"]
    append("dan")
    assert [each["offset"] for each in keptlog("read", "users").json_lines] == [0, 1, 2, 3]
    assert keptlog("verify", "users").code == 0
    assert keptlog("purge").code == 0


def test_a_catalog_from_before_a_purge_is_of_use_again_and_no_receipt_is_missing(
    keptlog: Run, home: Path, put_back: Callable[[], None], append: Append
) -> None:
    append("ann", "bob")
    assert keptlog("clean", "users").code == 0
    assert keptlog("purge", "users").code == 0
    put_back()
    assert keptlog("doctor").code == 1
    told = keptlog("topic", "register", "users", "--yes", "--json").json
    assert told["receipts"]["ends"] == [{"name": "chain", "before": None, "after": 1}]
    assert _keys(keptlog) == ["ann", "bob"]
    assert keptlog("doctor").code == 0
    assert "1 receipt, number 1" in keptlog("receipt", "verify").out
    assert keptlog("verify", "users").code == 0


def test_receipts_are_registered_before_topics_for_a_purge_in_between_would_begin_a_new_chain(
    keptlog: Run, home: Path, append: Append
) -> None:
    append("ann", "bob")
    append("ann")
    assert keptlog("clean", "users").code == 0
    assert keptlog("purge", "users").code == 0
    append("ann")
    append("ann")
    (home / "catalog.db").unlink()
    begin_anew(home)
    registrar = Registrar(open_home().store)
    registrar.register(registrar.propose_all(["users"]).proposals[0])  # killed here
    keptlog("clean", "users")
    keptlog("purge", "users")
    assert keptlog("topic", "register", "users", "--yes").code == 0
    assert "1 receipt, number 1" in keptlog("receipt", "verify").out
    assert keptlog("clean", "users").code == 0
    assert keptlog("purge", "users").code == 0
    assert "2 receipts, 1 to 2" in keptlog("receipt", "verify").out


def test_a_home_without_catalog_and_backup_begins_a_new_one(
    keptlog: Run, home: Path, append: Append, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    append("ann")
    open_home().store.create_topic("orders", 1, COMPACTED)
    open_home().append("orders", [NewRecord(b"1", b"1", 1)])
    (home / "catalog.db").unlink()
    assert "keptlog topic register TOPIC --new-catalog" in keptlog("status").err
    refused = keptlog("topic", "register", "users", "--new-catalog")
    assert refused.code == 2
    assert "give --yes" in refused.err
    assert not (home / "catalog.db").exists()
    begun = keptlog("topic", "register", "users", "--new-catalog", "--yes")
    assert begun.code == 0
    assert "not in the new catalog, until they are registered too: orders" in begun.err
    assert _keys(keptlog) == ["ann"]
    assert "keptlog topic register orders" in keptlog("doctor").out
    assert keptlog("topic", "register", "orders", "--yes").code == 0
    assert keptlog("doctor").code == 0
    append("bob")
    assert _keys(keptlog) == ["ann", "bob"]


def test_a_catalog_that_is_there_is_not_begun_anew(keptlog: Run, append: Append) -> None:
    append("ann")
    refused = keptlog("topic", "register", "users", "--new-catalog", "--yes")
    assert refused.code == 2
    assert "has not lost its catalog" in refused.err
    assert _keys(keptlog) == ["ann"]


def test_where_two_homes_went_on_nothing_is_changed_until_one_is_named(
    keptlog: Run, home: Path, put_back: Callable[[], None], append: Append
) -> None:
    append("bob")
    append("cy")
    theirs = _metadata(home)[-1]
    put_back()
    append("dan")
    append("eve")
    append("fay")
    refused = keptlog("topic", "register", "users", "--yes")
    assert refused.code == 1
    assert "two homes went on with it, each its own way" in refused.err
    assert str(theirs) in refused.err
    assert _keys(keptlog) == ["ann", "dan", "eve", "fay"]
    chosen = keptlog("topic", "register", "users", "--metadata", theirs.name, "--yes")
    assert chosen.code == 0
    assert "  users-0: would end at offset 3, not 4: what lies between is LOST" in chosen.out.splitlines()
    assert _keys(keptlog) == ["ann", "bob", "cy"]


def test_two_homes_that_went_on_are_told_apart_when_the_names_of_that_time_are_gone(
    keptlog: Run, home: Path, put_back: Callable[[], None], append: Append
) -> None:
    append("bob")
    append("cy")
    theirs = home.parent / "theirs.db"
    shutil.copy(home / "catalog.db", theirs)
    put_back()
    for _ in range(25):
        append("dan")
    refused = keptlog("topic", "register", "users", "--yes")
    assert refused.code == 1
    assert "two homes went on with it, each its own way" in refused.err
    shutil.copy(theirs, home / "catalog.db")
    refused = keptlog("topic", "register", "users", "--yes")
    assert refused.code == 1
    assert "does not lead to the newest one" in refused.err
    assert _keys(keptlog) == ["ann", "bob", "cy"]


@pytest.mark.parametrize("since", [1, 25])
def test_where_another_program_began_the_count_anew_the_highest_number_is_not_taken(
    keptlog: Run, home: Path, append: Append, since: int
) -> None:
    for _ in range(30):
        append("ann")
    catalog = open_home().store.committer.catalog
    newest = _metadata(home)[-1]
    named = newest.with_name("taken-in.metadata.json")
    named.write_text(json.dumps(json.loads(newest.read_text())))
    table = catalog.load_table(("keptlog", "users"))
    catalog.drop_table(("keptlog", "users"))
    catalog.register_table(("keptlog", "users"), f"{table.location()}/metadata/{named.name}")
    for _ in range(since):
        append("bob")
    refused = keptlog("topic", "register", "users", "--yes")
    assert refused.code == 1
    assert "does not lead to the newest one" in refused.err
    (home / "catalog.db").unlink()
    refused = keptlog("topic", "register", "users", "--new-catalog", "--yes")
    assert refused.code == 1
    assert "each its own way" in refused.err


def test_names_without_numbers_tell_no_order_and_one_can_be_named_by_its_path(
    keptlog: Run, home: Path, append: Append
) -> None:
    append("ann")
    append("bob")
    for number, path in enumerate(_metadata(home)):
        path.with_name(f"v{number}.metadata.json").write_text(json.dumps(json.loads(path.read_text())))
        path.unlink()
    (home / "catalog.db").unlink()
    refused = keptlog("topic", "register", "users", "--new-catalog", "--yes")
    assert refused.code == 1
    assert "don't tell which of them is the newest" in refused.err
    named = str(_metadata(home)[-1])
    assert keptlog("topic", "register", "users", "--metadata", named, "--yes").code == 0
    assert _keys(keptlog) == ["ann", "bob"]
    before = str(_metadata(home)[-2])
    assert keptlog("topic", "register", "users", "--metadata", before, "--yes").code == 0
    assert _keys(keptlog) == ["ann"]


def test_a_state_named_from_where_one_stands_is_found_from_elsewhere_too(
    keptlog: Run, home: Path, append: Append, monkeypatch: pytest.MonkeyPatch
) -> None:
    append("ann")
    (home / "catalog.db").unlink()
    monkeypatch.chdir(home / "warehouse")
    named = str(_metadata(home)[-1].relative_to(home / "warehouse"))
    assert keptlog("topic", "register", "users", "--new-catalog", "--metadata", named, "--yes").code == 0
    monkeypatch.chdir(home.parent)
    assert _keys(keptlog) == ["ann"]
    assert open_home().store.metadata_locations()["users"] == f"file://{_metadata(home)[-1]}"


def test_where_receipts_were_sealed_on_both_ways_it_gives_no_advice_that_cannot_help(
    keptlog: Run, home: Path, append: Append
) -> None:
    configs = COMPACTED | {"segment.ms": "1", "file.delete.delay.ms": "0"}
    old = home.parent / "old.db"
    open_home().store.create_topic("orders", 1, configs)
    for topic in ("users", "users", "orders"):
        if old.exists():
            shutil.copy(old, home / "catalog.db")
        for _ in range(2):
            open_home().append(topic, [NewRecord(b"ann", b"1", 1)])
        assert keptlog("clean", topic).code == 0
        assert keptlog("purge", topic).code == 0
        if not old.exists():
            shutil.copy(home / "catalog.db", old)
    refused = keptlog("topic", "register", "users", "--yes")
    assert refused.code == 1
    assert "the chain of receipts: " in refused.err
    assert "keptlog receipt verify" in refused.err
    assert "--metadata" not in refused.err


def test_a_damaged_catalog_is_to_be_moved_away_and_no_topic_is_nothing_to_register(
    keptlog: Run, home: Path, append: Append
) -> None:
    append("ann")
    (home / "catalog.db").write_bytes(b"no catalog" * 500)
    assert "move" in keptlog("topic", "register", "users", "--new-catalog", "--yes").err
    assert keptlog("topic", "register").code == 2


def test_of_two_commits_with_one_number_a_person_names_the_one_that_landed(
    keptlog: Run, home: Path, put_back: Callable[[], None], append: Append
) -> None:
    append("bob")
    put_back()
    append("cy")
    put_back()
    refused = keptlog("topic", "register", "users", "--yes")
    assert refused.code == 1
    assert "two commits have the highest number" in refused.err
    assert all(str(path) in refused.err for path in _metadata(home)[-2:])
    assert _keys(keptlog) == ["ann"]


def test_a_state_whose_files_are_gone_is_none_to_go_on_from(
    keptlog: Run, home: Path, put_back: Callable[[], None], append: Append
) -> None:
    append("bob")
    append("cy")
    put_back()
    known = {*(home / "warehouse/keptlog/users/data").rglob("*.parquet")}
    newest = max(known, key=lambda path: path.stat().st_mtime_ns)
    newest.unlink()
    refused = keptlog("topic", "register", "users", "--yes")
    assert refused.code == 1
    assert f"{newest}. Put it back from a copy" in refused.err
    assert _keys(keptlog) == ["ann"]
    before = _metadata(home)[-2].name
    assert keptlog("topic", "register", "users", "--metadata", before, "--yes").code == 0
    assert _keys(keptlog) == ["ann", "bob"]


def test_metadata_that_is_newer_and_cut_off_is_named(
    keptlog: Run, home: Path, put_back: Callable[[], None], append: Append
) -> None:
    append("bob")
    append("cy")
    put_back()
    cut = _metadata(home)[-1]
    cut.write_bytes(cut.read_bytes()[:100])
    refused = keptlog("topic", "register", "users", "--yes")
    assert refused.code == 1
    assert f"{cut} may be newer than all that can be read of it" in refused.err
    assert _keys(keptlog) == ["ann"]


def test_one_topic_that_cannot_be_told_costs_only_itself(
    keptlog: Run, put_back: Callable[[], None], append: Append
) -> None:
    append("bob")
    put_back()
    told = keptlog("topic", "register", "nobody", "users", "--yes", "--json")
    assert told.code == 1
    assert [each["subject"] for each in told.json["errors"]] == ["nobody"]
    assert list(told.json["topics"]) == ["users"]
    assert _keys(keptlog) == ["ann", "bob"]


def test_there_is_nothing_to_register_where_the_catalog_names_the_newest_state(keptlog: Run, append: Append) -> None:
    append("ann")
    told = keptlog("topic", "register", "users", "--yes")
    assert (told.code, told.out) == (0, "users: the catalog names the newest state already\n")
    assert json.loads(keptlog("topic", "register", "users", "--yes", "--json").out)["topics"] == {"users": None}


def test_a_state_that_the_catalog_names_by_another_spelling_is_nothing_to_register(
    keptlog: Run, home: Path, append: Append
) -> None:
    append("ann")
    catalog = open_home().store.committer.catalog
    catalog.drop_table(("keptlog", "users"))
    catalog.register_table(("keptlog", "users"), str(_metadata(home)[-1]))
    told = keptlog("topic", "register", "users", "--dry-run")
    assert (told.code, told.out) == (0, "users: the catalog names the newest state already\n")


def test_a_copy_of_a_home_registers_nothing(
    keptlog: Run, home: Path, append: Append, monkeypatch: pytest.MonkeyPatch
) -> None:
    append("ann")
    shutil.copytree(home, home.parent / "copy")
    append("bob")
    monkeypatch.setenv("KEPTLOG_HOME", str(home.parent / "copy"))
    refused = keptlog("topic", "register", "users", "--yes")
    assert refused.code == 2
    assert "is a copy of the home at" in refused.err


def test_a_copy_that_has_lost_its_catalog_does_not_go_on_with_the_files_of_the_original(
    keptlog: Run, home: Path, append: Append, monkeypatch: pytest.MonkeyPatch
) -> None:
    append("ann")
    copy = home.parent / "copy"
    shutil.copytree(home, copy)
    (copy / "catalog.db").unlink()
    monkeypatch.setenv("KEPTLOG_HOME", str(copy))
    refused = keptlog("topic", "register", "users", "--new-catalog", "--yes")
    assert refused.code == 1
    assert "it is a copy, or was moved" in refused.err
    named = keptlog("topic", "register", "users", "--metadata", str(_metadata(copy)[-1]), "--yes")
    assert "it is a copy, or was moved" in named.err
    assert "no topic" in keptlog("topic", "describe", "users").err


def test_a_home_that_was_moved_and_lost_its_catalog_is_registered_by_a_link_to_it(
    keptlog: Run, home: Path, append: Append
) -> None:
    append("ann")
    (home / "catalog.db").unlink()
    home.rename(home.parent / "moved")
    home.symlink_to(home.parent / "moved")
    assert keptlog("topic", "register", "users", "--new-catalog", "--yes").code == 0
    assert _keys(keptlog) == ["ann"]


def test_a_commit_that_comes_between_is_not_lost(put_back: Callable[[], None], append: Append) -> None:
    append("bob")
    put_back()
    registrar = Registrar(open_home().store)
    proposal = registrar.propose("users")
    assert proposal is not None
    append("cy")
    with pytest.raises(StalePlan, match="something else was committed meanwhile"):
        registrar.register(proposal)
    assert [record.key for _, record in open_home().read("users")] == [b"ann", b"cy"]
