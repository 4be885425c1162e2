"""``keptlog erase`` and ``keptlog erasure``: what is told before, asked for, shown and refused."""

from __future__ import annotations

import base64
import codecs
import io
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run, home, keptlog, lines
from tests.erasure.world import DAY_MS, HOUR_MS, World
from tests.table.foreign import table_of

__all__ = ["home", "keptlog", "lines"]
CREATE = ("--config", "cleanup.policy=compact", "--config", "max.compaction.lag.ms=3600000")


@pytest.fixture
def users(keptlog: Run, lines: Any) -> Run:
    keptlog("topic", "create", "users", *CREATE)
    keptlog("append", "users", "--file", lines({"key": "user-7@here", "value": "x"}))
    return keptlog


def test_it_tells_what_will_happen_and_does_it_only_when_it_may(users: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    told = users("erase", "users", "--key", "user-7@here", "--dry-run", "--run-id", "r1", "--by", "1h")
    assert told.code == 0
    assert "request r1: 1 key" in told.out
    assert "users: a tombstone of each key is appended at once" in told.out
    assert "IMPOSSIBLE: users-0 keeps the tombstone" in told.out
    assert users("erasure", "list").out == "no erasures\n"

    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    asked = users("erase", "users", "--key", "user-7@here")
    assert (asked.code, "erase 1 key for good?" in asked.err) == (130, True)
    assert users("erasure", "list").out == "no erasures\n"

    done = users("erase", "users", "--key", "user-7@here", "--yes", "--run-id", "r1", "--reason", "ticket 5")
    assert (done.code, "users: asked for, tombstoned" in done.out) == (0, True)
    assert [record["value"] for record in users("read", "users").json_lines] == ["x", None]
    again = users("erase", "users", "--key", "user-7@here", "--yes", "--run-id", "r1")
    assert (again.code, "users: asked for before" in again.out) == (0, True)
    outputs = [told, asked, done, again, users("erasure", "list"), users("erasure", "show", "r1")]
    assert [each for each in outputs if "user-7@here" in each.out + each.err] == []


def test_of_many_keys_show_names_the_first_and_json_all(users: Run, tmp_path: Path) -> None:
    (tmp_path / "keys.txt").write_text("".join(f"user-{number}@here\n" for number in range(25)))
    users("erase", "users", "--keys", str(tmp_path / "keys.txt"), "--yes", "--run-id", "r1", "--by", "2d")
    lines = users("erasure", "show", "r1").out.splitlines()
    keys = [line.split()[1:] for line in lines if line.split()[0] == "key"]
    assert len(keys) == 21
    assert keys[-1] == ["and", "5", "more", "(all", "with", "--json)"]
    assert next(line for line in lines if "deadline" in line)
    (shown,) = users("erasure", "show", "r1", "--json").json["erasures"]
    fingerprinted = [[f"{shown['secret_fingerprint']}:{each}"] for each in shown["key_hashes"]]
    assert len(fingerprinted) == 25
    assert keys[:-1] == fingerprinted[:20]


def test_a_repeated_request_tells_the_way_and_the_deadline_that_hold(users: Run) -> None:
    users("erase", "users", "--key", "user-7@here", "--yes", "--run-id", "r1", "--by", "2099-01-01T00:00Z")
    again = users(
        "erase", "users", "--key", "user-7@here", "--yes", "--run-id", "r1", "--by", "2d", "--reason", "other"
    )
    assert again.code == 0
    assert "users: has this request already, by tombstone\n" in again.out
    told = "deadline: 2099-01-01T00:00:00.000Z, as before; another deadline or reason needs another id\n"
    assert told in again.out


def test_what_waits_for_retention_names_its_command(keptlog: Run, lines: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No clean touches such a topic, so whoever only cleans and purges would wait for ever."""
    keptlog("topic", "create", "visits", "--config", "cleanup.policy=delete", "--config", f"retention.ms={HOUR_MS}")
    keptlog("append", "visits", "--file", lines({"key": "user-7@here", "value": "x"}))
    keptlog("erase", "visits", "--key", "user-7@here", "--yes", "--run-id", "r1")
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(time.time_ns() // 1_000_000 + 2 * HOUR_MS))
    for look in (["list"], ["show", "r1"], ["verify", "r1"]):
        assert "retention (keptlog retain visits)" in keptlog("erasure", *look).out
    assert keptlog("retain").code == 0
    assert "compacted" in keptlog("erasure", "list").out


def test_where_nobody_can_be_asked_nothing_is_done_and_no_secret_is_made(
    users: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users("erase", "users", "--key", "user-7@here", "--dry-run")
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        refused = users("erase", "users", "--key", "user-7@here")
        assert users("topic", "delete", "users").code == 2
    assert refused.code == 2
    assert refused.err == "keptlog: erase 1 key for good? Nobody is there to be asked: give --yes\n"
    assert not (home / "erasure.secret").exists()
    assert users("erasure", "list").out == "no erasures\n"


def test_show_and_list_tell_states_deadline_and_hashes(users: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    users("erase", "users", "--key", "user-7@here", "--yes", "--run-id", "r1", "--by", "2d", "--reason", "ticket 5")
    (listed,) = users("erasure", "list", "users", "--json").json["erasures"]
    assert (listed["id"], listed["keys"], listed["state"], listed["is_overdue"]) == ("r1", 1, "tombstoned", False)
    assert list(listed["states"]) == ["requested", "tombstoned"]
    (shown,) = users("erasure", "show", "r1", "--json").json["erasures"]
    (hashed,) = users("erase", "--hash", "--key", "user-7@here", "--json").json["key_hashes"]
    assert [f"{shown['secret_fingerprint']}:{each}" for each in shown["key_hashes"]] == [hashed]
    assert shown["bounds"] == [{"topic_partition": "users-0", "end_offset": 2, "key_hash": None}]
    assert "reason       ticket 5" in users("erasure", "show", "r1").out
    nothing = users("erasure", "show", "r2")
    told = "keptlog: there is no erasure 'r2': see keptlog erasure list; receipts have those that ended"
    assert (nothing.code, nothing.err) == (2, f"{told} (keptlog receipt list --request 'r2')\n")

    world_ms = World(Path()).now_ms + 3 * DAY_MS
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(world_ms))
    late = users("erasure", "list")
    assert (late.code, "OVERDUE" in late.out, "  a clean  " in late.out) == (1, True, True)
    assert users("erasure", "show", "r1").code == 1
    assert users("erasure", "verify", "--quiet").code == 1


def test_each_key_that_show_prints_can_be_asked_for_anew_by_its_hash(users: Run) -> None:
    """A repair may bring its records back when nobody has the key any more."""
    users("erase", "users", "--key", "user-7@here", "--key", "user-8@here", "--yes", "--run-id", "r1")
    found = [line.split() for line in users("erasure", "show", "r1").out.splitlines()]
    keys = [words[1] for words in found if words[0] == "key"]
    assert len(keys) == 2
    given = [text for each in keys for text in ("--key-hash", each)]
    assert users("erase", "users", *given, "--yes", "--run-id", "r2").code == 0
    hashes = [users("erasure", "show", each, "--json").json["erasures"][0]["key_hashes"] for each in ("r1", "r2")]
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize("form", ["text", "hex", "base64", "hash"])
def test_keys_come_from_a_file_in_every_format(users: Run, tmp_path: Path, form: str) -> None:
    key = b"user-7@here"
    texts = {"text": key.decode(), "hex": key.hex(), "base64": base64.b64encode(key).decode()}
    texts["hash"] = users("erase", "--hash", "--key", key.decode()).out.strip()
    path = tmp_path / "keys.txt"
    path.write_text(texts[form] + "\r\n" + texts[form] + "\n")
    done = users("erase", "users", "--keys", str(path), "--keys-format", form, "--yes", "--json", "--quiet")
    assert (done.code, done.json["topics"]["users"]["state"]) == (0, "tombstoned")
    tombstones = [record["key"] for record in users("read", "users").json_lines if record["value"] is None]
    assert tombstones == ["user-7@here"]


def test_a_byte_order_mark_before_the_first_key_is_no_part_of_it(users: Run, tmp_path: Path) -> None:
    """Else another key than the one in the file would be erased, and that would be proved."""
    path = tmp_path / "keys.txt"
    path.write_bytes(codecs.BOM_UTF8 + b"user-7@here\r\n")
    assert users("erase", "users", "--keys", str(path), "--yes", "--quiet").code == 0
    tombstones = [record["key"] for record in users("read", "users").json_lines if record["value"] is None]
    assert tombstones == ["user-7@here"]


@pytest.mark.parametrize(
    ("form", "content", "said"),
    [
        ("text", b"", "has no keys: write one a line"),
        ("text", codecs.BOM_UTF8, "has no keys: write one a line"),
        ("text", b"user-7@here\n\nb\n", "line 2 is empty: a key has at least one byte"),
        ("text", b"a\n\xff\xfe\n", "line 2 is not UTF-8: write keys that are no text as hex or base64"),
        ("hex", b"6b\nuser-7@here\n", "line 2 is not a key as hex"),
        ("base64", b"user-7@here", "line 1 is not a key as base64"),
        ("hash", b"6b6b", "line 1 is not the hash of a key (16 hex digits, a colon, 64 hex digits"),
        ("hash", b"6b" * 32, "where the first 16 are lacking, put secret_fingerprint before it, if it is of a receipt"),
    ],
)
def test_a_bad_file_of_keys_is_one_line_without_a_key(
    users: Run, tmp_path: Path, form: str, content: bytes, said: str
) -> None:
    path = tmp_path / "keys.txt"
    path.write_bytes(content)
    refused = users("erase", "users", "--keys", str(path), "--keys-format", form, "--yes")
    assert (refused.code, refused.out, len(refused.err.splitlines())) == (2, "", 1)
    assert said in refused.err
    assert "user-7@here" not in refused.err
    assert users("erasure", "list").out == "no erasures\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("users", "--keys", "nowhere.txt"), "--keys nowhere.txt can't be read: No such file"),
        (("users",), "there is no key to erase: give one"),
        (("--key", "k"), "there is no topic to erase from: name one"),
        (("nothing", "--key", "k"), "there is no topic 'nothing'"),
        (("users", "--key", "k", "--by", "soon"), "'soon' is no time: write 2026-12-01T00:00Z"),
        (("users", "--key", "k", "--by", "2001-01-01"), "the deadline 2001-01-01T00:00:00.000Z has passed"),
        (("users", "--key", "k", "--hash"), "--hash only prints hashes"),
        (("users", "--key-hex", "xyz"), "--key-hex is not a key as hex"),
        (("users", "--key", ""), "--key is empty"),
    ],
)
def test_what_can_t_be_accepted_is_one_line_and_exit_2(users: Run, arguments: tuple[str, ...], said: str) -> None:
    refused = users("erase", *arguments, "--yes")
    assert (refused.code, len(refused.err.splitlines())) == (2, 1)
    assert said in refused.err


def test_one_broken_topic_is_exit_1_and_the_others_get_theirs(users: Run, home: Path) -> None:
    users("topic", "create", "b", *CREATE)
    broken = {"log.p0.log-end-offset": "many"}
    table_of(home, "b").transaction().set_properties(broken).commit_transaction()
    done = users("erase", "users", "b", "--key", "k-12345678", "--yes", "--json", "--quiet")
    assert done.code == 1
    assert (list(done.json["topics"]), [each["subject"] for each in done.json["errors"]]) == (["users"], ["b"])
    assert done.err.startswith("keptlog: ")


def test_a_request_that_no_topic_accepts_is_exit_2_and_one_that_some_accept_is_exit_1(users: Run) -> None:
    users("topic", "create", "b", *CREATE)
    users("erase", "users", "--key", "user-7@here", "--yes", "--run-id", "r1")
    for options in (["--yes"], ["--dry-run"]):
        of_others = users("erase", "users", "--key", "zz", "--run-id", "r1", *options)
        assert (of_others.code, "was made for other keys" in of_others.err) == (2, True)
        in_part = users("erase", "users", "b", "--key", "zz", "--run-id", "r1", *options)
        assert (in_part.code, "was made for other keys" in in_part.err) == (1, True)


def test_where_nothing_was_asked_for_nothing_is_said_of_how_far_it_is(users: Run, home: Path) -> None:
    for path in (home / "warehouse").rglob("users/metadata/*.metadata.json"):
        path.write_text("{")
    asked = users("erase", "users", "--key", "user-7@here", "--yes", "--run-id", "r1")
    assert (asked.code, "tells how far it is" in asked.out) == (1, False)


@pytest.mark.parametrize("asked", ["show", "verify"])
def test_while_a_topic_can_t_be_read_nobody_says_that_there_is_no_such_erasure(
    users: Run, home: Path, asked: str
) -> None:
    users("erase", "users", "--key", "user-7@here", "--yes", "--run-id", "r1")
    for path in home.rglob("metadata/receipts/erasures/*"):
        path.unlink()
    told = users("erasure", asked, "r1")
    assert (told.code, "users" in told.err, "are gone" in told.err) == (1, True, True)
    assert "no erasure" not in told.err


def test_times_are_dates_or_durations(users: Run) -> None:
    now_ms = World(Path()).now_ms
    for by, expected_ms in (("30d", now_ms + 30 * DAY_MS), ("12h", now_ms + 12 * HOUR_MS)):
        told = users("erase", "users", "--key", "k", "--by", by, "--dry-run", "--json").json["topics"]["users"]
        assert expected_ms <= told["deadline_ms"] <= expected_ms + HOUR_MS
    told = users("erase", "users", "--key", "k", "--by", "2099-12-01T00:00+01:00", "--dry-run", "--json").json
    assert told["topics"]["users"]["deadline_ms"] == 4_099_762_800_000


def test_json_holds_no_key(users: Run) -> None:
    done = users("erase", "users", "--key", "user-7@here", "--yes", "--json", "--quiet", "--run-id", "r1")
    shown = [done.json, users("erasure", "show", "r1", "--json").json, users("erasure", "list", "--json").json]
    assert "user-7@here" not in json.dumps(shown)
