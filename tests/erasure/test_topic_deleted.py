"""Open erasures end with their topic, and the receipt of its deletion names them: someone has to answer for each."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.receipts.receipt import Receipt
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.io.files import TableFiles
from keptlog.table.removal.deletion import Deletion
from keptlog.table.removal.drafts import seal_drafts
from keptlog.table.removal.removal import Removal
from keptlog.table.removal.topic_deletion import TopicDeletion
from tests.cli.conftest import Run, home, keptlog, lines
from tests.erasure.world import DAY_MS, KEY, OTHER, VALUE, World
from tests.table.foreign import set_properties
from tests.table.receipt_chains import chain_at

__all__ = ["home", "keptlog", "lines"]


def told(world: World) -> list[dict[str, Any] | None]:
    """The erasures that the receipts of deletions name."""
    receipts: list[Receipt] = [each for each in chain_at(world.home).receipts() if each.kind == "topic-delete"]
    found: list[dict[str, Any] | None] = []
    for each in receipts:
        found += each.content["erasures"] if each.content["erasures"] is not None else [None]
    return found


def ids(world: World) -> list[str]:
    return [each["request"] for each in told(world) if each]


def delete(world: World) -> TopicDeletion:
    return world.store.delete_topic("users", world.now_ms)


@pytest.fixture
def asked(world: World) -> World:
    """A topic with two open requests, and one that was verified."""
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask()
    world.to_deleted()
    assert world.verified().erasure.state == "verified"
    world.append((KEY, b"again"))
    world.ask(id="r2", deadline_ms=world.now_ms + 30 * DAY_MS, reason="ticket 7")
    world.ask(OTHER, id="r3")
    return world


def test_the_receipt_names_those_that_are_open_with_all_that_the_topic_knew_of_them(asked: World) -> None:
    erasure = asked.erasure(erasure_id="r2")
    done = delete(asked)
    assert done.unfinished is None
    assert [each.request for each in done.ended or ()] == ["r2", "r3"]
    assert ids(asked) == ["r2", "r3"]
    assert told(asked)[0] == {
        "request": "r2",
        "way": "tombstone",
        "reason": "ticket 7",
        "state": "tombstoned",
        "requested_ms": erasure.requested_ms,
        "deadline_ms": erasure.deadline_ms,
        "secret_fingerprint": erasure.fingerprint,
        "key_hashes": list(erasure.key_hashes),
    }


def test_a_topic_without_an_open_one_has_none_in_its_receipt(world: World) -> None:
    world.create()
    world.append((KEY, VALUE))
    assert delete(world).ended == ()
    assert told(world) == []


def test_a_deletion_that_was_killed_when_the_register_was_gone_still_names_them(
    asked: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(Exception):
        pass

    def killed(*_: Any) -> None:
        raise Killed

    monkeypatch.setattr(Removal, "look_again", killed)
    with pytest.raises(Killed):
        delete(asked)
    monkeypatch.undo()
    assert asked.register_files == []
    assert [each.request for each in delete(asked).ended or ()] == ["r2", "r3"]
    assert ids(asked) == ["r2", "r3"]


class KilledAtOnce(Exception):
    pass


def begun_before(world: World, monkeypatch: pytest.MonkeyPatch, killed_in: str) -> None:
    """A deletion that a keptlog began which did not look for erasures."""

    def killed(*_: Any) -> None:
        raise KilledAtOnce

    monkeypatch.setattr(Removal, killed_in, killed)
    with pytest.raises(KilledAtOnce):
        delete(world)
    monkeypatch.undo()
    (journal,) = world.home.rglob("gc/deletion-*.json")
    stored = json.loads(journal.read_text())
    del stored["erasures"]
    journal.write_text(json.dumps(stored))


def test_a_deletion_that_an_older_keptlog_began_names_them_while_their_register_is_there(
    asked: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun_before(asked, monkeypatch, "delete")
    assert [each.request for each in delete(asked).ended or ()] == ["r2", "r3"]
    assert ids(asked) == ["r2", "r3"]


def test_a_deletion_that_an_older_keptlog_began_does_not_tell_of_none_where_the_register_is_gone(
    asked: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun_before(asked, monkeypatch, "look_again")
    assert asked.register_files == []
    assert delete(asked).ended is None
    assert told(asked) == [None]


@pytest.mark.parametrize("killed_in", ["delete", "look_again"])
def test_each_is_in_one_receipt_where_an_older_keptlog_went_on_in_between(
    asked: World, monkeypatch: pytest.MonkeyPatch, killed_in: str
) -> None:
    """Its journal does not know them, and the first one does; their register may be there or gone."""

    def killed(*_: Any) -> None:
        raise KilledAtOnce

    monkeypatch.setattr(Removal, killed_in, killed)
    with pytest.raises(KilledAtOnce):
        delete(asked)
    late_file(asked)
    with pytest.raises(KilledAtOnce):
        delete(asked)
    monkeypatch.undo()
    journals = {path: json.loads(path.read_text()) for path in asked.home.rglob("deletion-*.json")}
    (later,) = (path for path, stored in journals.items() if not stored["erasures"])
    del journals[later]["erasures"]
    later.write_text(json.dumps(journals[later]))
    assert [each.request for each in delete(asked).ended or ()] == ["r2", "r3"]
    assert (len(journals), ids(asked), None in told(asked)) == (2, ["r2", "r3"], False)


def late_file(world: World) -> None:
    """What a run stages that knew the topic before."""
    (metadata,) = world.home.rglob("keptlog/users/metadata")
    data = metadata.parent / "data"
    data.mkdir(exist_ok=True)
    (data / "staged-late.parquet").write_bytes(b"PAR1")


def stopped_at_the_seal(world: World, monkeypatch: pytest.MonkeyPatch, *, is_sealed: bool) -> None:
    """Let a deletion be killed before its first receipt is sealed, or behind that."""

    def killed(*how: Any) -> None:
        if is_sealed:
            seal_drafts(*how)
        raise KilledAtOnce

    with monkeypatch.context() as patch:
        patch.setattr("keptlog.table.removal.deletion.seal_drafts", killed)
        with pytest.raises(KilledAtOnce):
            delete(world)


def require_one_account(world: World) -> None:
    """A later receipt of a deletion does not deny what the first one tells."""
    receipts = [each.content for each in chain_at(world.home).receipts() if each.kind == "topic-delete"]
    assert len(receipts) == 2
    assert [(each["not_looked_at"], each["held_files"]) for each in receipts] == [([], []), ([], [])]
    assert None not in told(world)
    assert ids(world) == ["r2", "r3"]


@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_second_receipt_does_not_deny_what_the_first_tells(
    asked: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, is_sealed: bool
) -> None:
    """Killed before the first was sealed, and behind that."""

    stopped_at_the_seal(asked, monkeypatch, is_sealed=is_sealed)
    late_file(asked)
    assert [each.request for each in delete(asked).ended or ()] == ["r2", "r3"]
    require_one_account(asked)
    assert "no receipt tells" not in caplog.text


@pytest.mark.parametrize("is_sealed", [False, True])
def test_nor_does_one_whose_journal_an_older_keptlog_wrote(
    asked: World, monkeypatch: pytest.MonkeyPatch, *, is_sealed: bool
) -> None:
    stopped_at_the_seal(asked, monkeypatch, is_sealed=is_sealed)
    late_file(asked)
    begun_before(asked, monkeypatch, "delete")
    assert [each.request for each in delete(asked).ended or ()] == ["r2", "r3"]
    require_one_account(asked)


def test_each_is_in_one_receipt_where_an_older_keptlog_goes_on_while_their_register_can_not_be_deleted(
    asked: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first receipt is sealed, and the register can still be read."""
    really = TableFiles.delete

    def kept(files: TableFiles, path: str) -> None:
        if "/erasures/" in path:
            raise PermissionError(13, "kept", path)
        really(files, path)

    monkeypatch.setattr(TableFiles, "delete", kept)
    assert not delete(asked).is_over
    monkeypatch.undo()
    assert asked.register_files
    begun_before(asked, monkeypatch, "delete")
    assert [each.request for each in delete(asked).ended or ()] == ["r2", "r3"]
    require_one_account(asked)


def test_a_receipt_of_what_came_while_the_catalog_did_not_answer_does_not_deny_what_the_first_tells(
    asked: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> None:
        raise StorageUnavailable("the catalog does not answer")

    monkeypatch.setattr(Deletion, "_forget", away)
    with pytest.raises(StorageUnavailable):
        delete(asked)
    monkeypatch.undo()
    late_file(asked)
    assert [each.request for each in delete(asked).ended or ()] == ["r2", "r3"]
    require_one_account(asked)


def test_a_deletion_that_has_only_to_be_forgotten_still_tells_what_ended(
    asked: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> None:
        raise KilledAtOnce

    monkeypatch.setattr(Deletion, "_forget", killed)
    with pytest.raises(KilledAtOnce):
        delete(asked)
    monkeypatch.undo()
    assert [each.request for each in delete(asked).ended or ()] == ["r2", "r3"]
    assert ids(asked) == ["r2", "r3"]


def test_a_receipt_that_could_not_tell_is_not_corrected_by_a_later_one(
    asked: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it did not read is gone: nobody can tell."""
    for each in asked.register_files:
        each.write_bytes(b"{")

    def killed(*_: Any) -> None:
        raise KilledAtOnce

    monkeypatch.setattr(Deletion, "_forget", killed)
    with pytest.raises(KilledAtOnce):
        delete(asked)
    monkeypatch.undo()
    late_file(asked)
    assert delete(asked).ended is None
    assert set(map(str, told(asked))) == {"None"}


def test_each_is_in_one_receipt_where_a_file_stays_until_the_next_try(
    asked: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse = TableFiles.delete

    def kept(files: TableFiles, path: str) -> None:
        if path.endswith(".parquet"):
            raise PermissionError(13, "kept", path)
        refuse(files, path)

    monkeypatch.setattr(TableFiles, "delete", kept)
    assert not delete(asked).is_over
    monkeypatch.undo()
    assert delete(asked).unfinished is None
    assert ids(asked) == ["r2", "r3"]


def test_a_register_that_can_not_be_read_keeps_nobody_from_deleting_and_is_not_told_as_none(asked: World) -> None:
    for each in asked.register_files:
        each.write_bytes(b"{")
    done = delete(asked)
    assert (done.unfinished, done.ended) == (None, None)
    assert told(asked) == [None]


def test_a_storage_that_does_not_answer_is_waited_for_while_the_register_may_still_be_read(
    asked: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = TableFiles.read_bytes

    def silent(files: TableFiles, path: str) -> bytes:
        if "/erasures/" in path:
            raise TimeoutError("no answer")
        return read(files, path)

    monkeypatch.setattr(TableFiles, "read_bytes", silent)
    with pytest.raises(Exception, match="no answer"):
        delete(asked)
    monkeypatch.undo()
    assert asked.files_with(b"PAR1")
    delete(asked)
    assert ids(asked) == ["r2", "r3"]


def test_a_purge_that_finishes_the_deletion_names_them(asked: World) -> None:
    catalog = open_catalog(asked.home)
    store = asked.store
    Deletion(catalog, store.files, "users", asked.now_ms)._require_own_folder()
    catalog.create_namespace(("keptlog_deleting",))
    catalog.rename_table(("keptlog", "users"), ("keptlog_deleting", "users"))
    assert store.deletion("users", asked.now_ms).finish().is_over
    assert ids(asked) == ["r2", "r3"]


@pytest.fixture
def users(keptlog: Run, lines: Any) -> Run:
    """The command, and a topic with an open request."""
    keptlog("topic", "create", "users", "--config", "cleanup.policy=compact")
    keptlog("append", "users", "--file", lines({"key": "a", "value": "1"}))
    assert keptlog("erase", "users", "--key", "a", "--by", "30d", "--run-id", "q1", "--yes").code == 0
    return keptlog


def test_the_question_and_the_answer_of_the_command_name_them(users: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    asked = users("topic", "delete", "users")
    assert (asked.code, "users: 1 open erasure would end with it; ask for their keys" in asked.err) == (130, True)
    done = users("topic", "delete", "users", "--yes")
    assert (done.code, "users: 1 open erasure ended with it: q1; ask for their keys" in done.out) == (0, True)
    shown = users("receipt", "show", "1").out
    assert "1 open erasure ended with it:\n    q1 of 1 key, asked for 20" in shown
    assert "receipts have those that ended" in users("erasure", "show", "q1").err


def test_the_answer_in_json_names_them(users: Run) -> None:
    assert users("topic", "delete", "users", "--yes", "--json").json["ended_erasures"] == ["q1"]


def test_a_topics_file_that_deletes_the_topic_is_told_of_them(users: Run, tmp_path: Path) -> None:
    (tmp_path / "topics.yaml").write_text("topics: {}\n")
    apply = ("topic", "apply", str(tmp_path / "topics.yaml"), "--delete", "users")
    assert "users: 1 open erasure would end with it" in users(*apply, "--dry-run").err
    assert "users: 1 open erasure ended with it: q1" in users(*apply, "--yes").out


def test_who_can_not_be_told_whether_there_are_any_is_told_that(
    users: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_properties(home, {"log.erasures.open": "{"}, "users")
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    asked = users("topic", "delete", "users")
    assert "users: open erasures would end with it, and nobody can tell whether there are any: " in asked.err
    assert asked.code == 0
    assert "ended with it: q1" in asked.out
