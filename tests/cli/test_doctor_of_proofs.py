"""``keptlog doctor`` on what proves a deletion: the signing key, the chain, waiting receipts, registers, the secret."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keptlog.home import open_home
from keptlog.receipts.signing import PublicKey, SigningKey
from tests.broken_topics import cut_in_half
from tests.cli.conftest import Run

DAY_MS = 24 * 3_600_000
CHAIN = "warehouse/keptlog_receipts/chain"


@pytest.fixture
def proved(
    keptlog: Run, home: Path, lines: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A home with a sealed receipt and an open erasure; other Sparks of this machine are not looked at."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "spark"))
    config = ("--config", "cleanup.policy=compact,delete", "--config", "file.delete.delay.ms=60000")
    assert keptlog("topic", "create", "users", *config).code == 0
    assert keptlog("append", "users", "--file", lines({"key": "a", "value": "1"}, {"key": "b", "value": "1"})).code == 0
    assert keptlog("delete-records", "users-0", "2", "--yes").code == 0
    purge(keptlog, monkeypatch)
    assert keptlog("append", "users", "--file", lines({"key": "c", "value": "1"})).code == 0
    assert keptlog("erase", "users", "--key", "c", "--by", "60d", "--yes").code == 0
    checks = checks_of(keptlog, 0)
    assert (checks["receipts"]["diagnosis"], checks["erasure records"]["diagnosis"]) == ("fine", "fine")
    return home


def purge(keptlog: Run, monkeypatch: pytest.MonkeyPatch, days: int = 3, *topics: str, code: int = 0) -> None:
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(time.time_ns() // 1_000_000 + days * DAY_MS))
    assert keptlog("purge", *topics).code == code
    monkeypatch.delenv("KEPTLOG_NOW_MS")


def checks_of(keptlog: Run, code: int) -> dict[str, Any]:
    told = keptlog("doctor", "--no-probes", "--json")
    assert told.code == code, told.out + told.err
    return {check["name"]: check for check in told.json["checks"]}


def problem(keptlog: Run, check: str) -> dict[str, Any]:
    """The one problem of the one check that finds something."""
    checks = checks_of(keptlog, 1)
    assert [name for name, each in checks.items() if each["problems"]] == [check]
    [found] = checks[check]["problems"]
    assert isinstance(found, dict)
    return found


def files_of(home: Path, pattern: str) -> list[Path]:
    return sorted(home.glob(pattern))


@pytest.mark.parametrize(
    ("break_key", "said"),
    [
        pytest.param(lambda key: key.write_bytes(b""), "is not usable", id="empty"),
        pytest.param(cut_in_half, "is not usable", id="cut off"),
        pytest.param(lambda key: key.write_bytes(b"\xff\x00noise"), "is not usable", id="noise"),
        pytest.param(lambda key: key.chmod(0o644), "chmod 600", id="readable by others"),
    ],
)
def test_a_key_that_can_not_sign_is_told_before_anything_is_to_be_signed(
    keptlog: Run, proved: Path, break_key: Callable[[Path], object], said: str
) -> None:
    break_key(proved / "receipts.key")
    found = problem(keptlog, "receipts")
    assert said in found["what"]
    assert str(proved / "receipts.key") in found["what"]


def test_a_key_that_is_gone_is_no_problem_for_a_new_one_is_made_and_no_look_makes_one(
    keptlog: Run, proved: Path
) -> None:
    (proved / "receipts.key").unlink()
    checks_of(keptlog, 0)
    assert not (proved / "receipts.key").exists()


def test_a_receipt_that_could_not_be_sealed_is_told_once_a_purge_should_have_sealed_it(
    keptlog: Run, proved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = (proved / "receipts.key").read_bytes()
    (proved / "receipts.key").write_bytes(b"")
    assert keptlog("delete-records", "users-0", "3", "--yes").code == 0
    purge(keptlog, monkeypatch, code=1)
    [draft] = files_of(proved, "warehouse/keptlog/users/metadata/receipts/*.json")
    verified = keptlog("receipt", "verify", "--json").json
    assert (verified["is_sound"], verified["waiting"]) == (True, [f"file://{draft}"])
    told = keptlog("receipt", "verify").out
    assert f"not sealed yet, so none of these: 1 receipt; the next purge seals them:\n  file://{draft}\n" in told
    (proved / "receipts.key").write_bytes(key)
    checks_of(keptlog, 0)
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(time.time_ns() // 1_000_000 + 9 * DAY_MS))
    [late] = checks_of(keptlog, 1)["receipts"]["problems"]
    assert "1 receipt of topic users could not be sealed since " in late["what"]
    assert late["command"] == "keptlog purge users"
    assert keptlog("purge", "users").code == 0
    checks_of(keptlog, 0)
    assert keptlog("receipt", "verify", "--json").json["waiting"] == []


def test_a_purge_whose_receipt_can_not_be_sealed_ends_with_1_until_one_can(
    keptlog: Run, proved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was 0, so no cron ever said that what was deleted can't be proved."""
    key = (proved / "receipts.key").read_bytes()
    (proved / "receipts.key").write_bytes(b"")
    assert keptlog("delete-records", "users-0", "3", "--yes").code == 0
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(time.time_ns() // 1_000_000 + 3 * DAY_MS))
    first, again = keptlog("purge", "--json"), keptlog("purge")
    [error], [waiting] = first.json["errors"], first.json["topics"]["users"]["receipts_waiting"]
    assert (first.code, again.code, error["subject"]) == (1, 1, "users")
    assert error["message"].startswith("topic users: 1 receipt can't be sealed (")
    assert error["action"] == "fix_config", "a damaged key is not mended by trying again"
    assert f"users: receipt {waiting} waits to be sealed: " in again.out
    assert "1 receipt can't be sealed (" in again.err
    (proved / "receipts.key").write_bytes(key)
    assert [keptlog("purge").code, keptlog("purge", "--json").json["errors"]] == [0, []]


def test_a_receipt_whose_draft_could_not_be_deleted_is_sealed_all_the_same(
    keptlog: Run, proved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [receipt] = files_of(proved, f"{CHAIN}/receipts/*/000000000/*.json")
    content = keptlog("receipt", "show", "1", "--json").json
    draft = proved / "warehouse/keptlog/users/metadata/receipts" / f"{content['id']}.json"
    draft.write_text(json.dumps({name: content[name] for name in ("id", "kind", "at_ms", "content")}))
    verified = keptlog("receipt", "verify", "--json").json
    assert (verified["is_sound"], verified["waiting"]) == (True, [])
    assert "not sealed yet" not in keptlog("receipt", "verify").out
    os.utime(draft, (0, 0))
    assert checks_of(keptlog, 0)["receipts"]["problems"] == []
    purge(keptlog, monkeypatch)
    assert not draft.exists()
    assert files_of(proved, f"{CHAIN}/receipts/*/000000000/*.json") == [receipt]


@pytest.mark.parametrize(
    "lost",
    ["metadata/*.metadata.json", "receipts/*/heads/*.json", "receipts/*/000000000/*.json"],
    ids=["its table", "its head", "a receipt"],
)
def test_a_chain_that_has_lost_a_file_is_told_and_what_names_the_rest(keptlog: Run, proved: Path, lost: str) -> None:
    for path in files_of(proved, f"{CHAIN}/{lost}"):
        path.unlink()
    found = problem(keptlog, "receipts")
    assert "receipts" in found["what"]
    assert found["command"] == "keptlog receipt verify"


@pytest.mark.parametrize(
    ("file", "junk"),
    [
        pytest.param("receipts/*/000000000/*.json", b"\x00junk", id="a receipt is junk"),
        pytest.param("receipts/*/000000000/*.json", b"", id="a receipt is empty"),
        pytest.param("receipts/*/000000000/*.json", None, id="a receipt says something else"),
        pytest.param("receipts/*/heads/*.json", None, id="the head says something else"),
    ],
)
def test_a_file_of_the_chain_that_was_written_over_is_told(
    keptlog: Run, proved: Path, file: str, junk: bytes | None
) -> None:
    [path] = files_of(proved, f"{CHAIN}/{file}")
    said = path.read_bytes()
    path.write_bytes(said.replace(b'"at_ms": 1', b'"at_ms": 2') if junk is None else junk)
    assert path.read_bytes() != said
    found = problem(keptlog, "receipts")
    assert str(path) in found["what"]
    assert found["command"] == "keptlog receipt verify"


def test_receipts_that_others_have_signed_with_keys_that_are_not_here_are_no_problem(
    keptlog: Run, proved: Path
) -> None:
    (proved / "receipts.pub").unlink()
    (proved / "receipts.key").unlink()
    checks_of(keptlog, 0)


def test_a_public_key_that_is_gone_after_the_signing_key_was_changed_is_told(
    keptlog: Run, proved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who checks the receipts of before finds their key unknown."""
    public = (proved / "receipts.pub").read_bytes()
    (proved / "receipts.key").unlink()
    assert keptlog("delete-records", "users-0", "3", "--yes").code == 0
    purge(keptlog, monkeypatch)
    checks_of(keptlog, 0)
    (proved / "receipts.pub").unlink()
    assert keptlog("receipt", "verify").code == 1
    found = problem(keptlog, "receipts")
    assert f"signed with key {PublicKey.of_pem(public).key_id}, which is not known" in found["what"]
    assert (found["command"], found["todo"][:28]) == (None, "put the file back from a bac")
    (proved / "receipts.pub").write_bytes(public)
    checks_of(keptlog, 0)


def test_a_chain_whose_table_was_dropped_is_told(keptlog: Run, proved: Path) -> None:
    open_home(proved).store._catalog.drop_table(("keptlog_receipts", "chain"))
    assert "of an earlier chain, which the catalog no longer knows" in problem(keptlog, "receipts")["what"]


@pytest.mark.parametrize("lose", [Path.unlink, cut_in_half], ids=["gone", "cut off"])
def test_a_register_of_erasures_that_is_lost_is_told_and_the_topic_is_fine_else(
    keptlog: Run, proved: Path, lose: Callable[[Path], object]
) -> None:
    for path in files_of(proved, "warehouse/keptlog/users/metadata/receipts/erasures/*.json"):
        lose(path)
    found = problem(keptlog, "erasure records")
    assert found["subject"] == "users"
    assert "until then nobody can tell which erasures are open" in found["what"]


@pytest.mark.parametrize(
    ("lose", "said"),
    [
        pytest.param(Path.unlink, "this home has no erasure secret, and there are open erasures: users", id="gone"),
        pytest.param(lambda path: path.write_bytes(b""), "holds no erasure secret", id="empty"),
        pytest.param(
            lambda path: path.write_text("ab" * 32), "an open erasure of topic users was made with", id="other"
        ),
    ],
)
def test_a_secret_that_open_erasures_were_made_with_is_missed_and_none_is_made(
    keptlog: Run, proved: Path, lose: Callable[[Path], object], said: str
) -> None:
    secret = proved / "erasure.secret"
    lose(secret)
    was_there = secret.exists()
    assert said in problem(keptlog, "erasure records")["what"]
    assert secret.exists() == was_there


@pytest.mark.parametrize("content", [b"garbage", b"", None])
def test_a_public_key_that_can_not_be_used_is_told(keptlog: Run, proved: Path, content: bytes | None) -> None:
    path = proved / "receipts.pub"
    path.unlink()
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    found = problem(keptlog, "receipts")
    assert f"public key {path} " in found["what"]


def test_a_signing_key_that_no_public_key_belongs_to_is_told(keptlog: Run, proved: Path) -> None:
    (proved / "receipts.key").write_bytes(SigningKey.generate().to_pem())
    found = problem(keptlog, "receipts")
    assert "the signing key is " in found["what"]
    assert "put the signing key back from a backup" in found["todo"]


def test_the_chain_of_a_home_that_was_moved_is_not_looked_at_and_no_damage_is_told_of_it(
    keptlog: Run, proved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proved.rename(proved.with_name("moved"))
    monkeypatch.setenv("KEPTLOG_HOME", str(proved.with_name("moved")))
    assert "was moved from" in problem(keptlog, "home")["what"]
    assert checks_of(keptlog, 1)["receipts"]["diagnosis"] == "not looked at"


@pytest.mark.parametrize("goes_on", [False, True], ids=["as it was put back", "sealed again since"])
def test_receipts_that_the_catalog_forgot_when_it_was_put_back_are_told_as_receipt_verify_tells_them(
    keptlog: Run, proved: Path, lines: Callable[..., str], monkeypatch: pytest.MonkeyPatch, *, goes_on: bool
) -> None:
    older = (proved / "catalog.db").read_bytes()
    for at in (3, 4):
        _seal_one(keptlog, lines, monkeypatch, at)
    (proved / "catalog.db").write_bytes(older)
    if goes_on:
        assert keptlog("topic", "create", "others", "--config", "cleanup.policy=delete").code == 0
        _seal_one(keptlog, lines, monkeypatch, 1, "others")
    verified = keptlog("receipt", "verify", "--json")
    assert verified.code == 1
    [said] = [each["text"] for each in verified.json["findings"]]
    assert "it was put back to an older state" in said
    assert [each["what"] for each in checks_of(keptlog, 1)["receipts"]["problems"]] == [said]


def _seal_one(
    keptlog: Run, lines: Callable[..., str], monkeypatch: pytest.MonkeyPatch, end: int, topic: str = "users"
) -> None:
    """A purge that deletes a segment for good."""
    assert keptlog("append", topic, "--file", lines({"key": f"k{end}", "value": "1"})).code == 0
    assert keptlog("delete-records", f"{topic}-0", str(end), "--yes").code == 0
    before = len(keptlog("receipt", "list", "--json").json["receipts"])
    purge(keptlog, monkeypatch, 3 + end, topic)
    assert len(keptlog("receipt", "list", "--json").json["receipts"]) == before + 1
