"""``keptlog receipt``, ``erasure show``: who has the id of a request finds its receipt, also once it is forgotten."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from keptlog.cli import output
from keptlog.errors import LogCorrupt
from keptlog.home import open_home
from keptlog.receipts.receipt import Draft, canonical
from tests.cli.conftest import Run
from tests.erasure.world import DAY_MS, KEY, OTHER, VALUE, World

LONG = "request-of-2026-11-29-ticket-number-4711-of-the-portal"
"""Longer than what of a request's id fits into the id of a receipt."""
AT_MS = 1_700_000_000_000
ENDED = [{"request": "q1", "way": "tombstone", "state": "requested"}]


def of(topic: str, request: str) -> Draft:
    return Draft(f"erasure-{topic}-{request[:9]}-1", "erasure", AT_MS, {"topic": topic, "request": request})


@pytest.fixture
def sealed(keptlog: Run, home: Path) -> Run:
    """A home with receipts of a purge, of requests, and of a deletion with which one ended."""
    purged = {"topic": "users", "files": [{"path": "file:///x/a.parquet", "bytes": 10}], "held_files": []}
    open_home(home).receipts.chain.append(
        [
            Draft("5f2c", "purge", AT_MS, purged),
            of("users", LONG),
            of("users", "r1"),
            of("orders", "r1"),
            Draft("77aa", "topic-delete", AT_MS, purged | {"erasures": ENDED}),
        ]
    )
    return keptlog


def numbers(run: Run, *options: str) -> list[int]:
    return [each["number"] for each in run("receipt", "list", *options, "--json").json["receipts"]]


def test_the_list_names_the_request_of_each_receipt(sealed: Run) -> None:
    listed = sealed("receipt", "list").out.splitlines()
    assert listed[0].split() == ["number", "done", "kind", "topic", "request", "files", "size", "id"]
    assert [line.split()[4] for line in listed[1:]] == ["-", LONG, "r1", "r1", "-"]
    rows = sealed("receipt", "list", "--json").json["receipts"]
    assert [each["request"] for each in rows] == [None, LONG, "r1", "r1", None]


def test_a_receipt_of_no_deletion_is_not_told_as_one_of_no_file(sealed: Run) -> None:
    """An erasure's files were looked through, and are there: 0 files of 0 B read as if nobody had looked."""
    listed = sealed("receipt", "list").out.splitlines()
    assert [line.split()[5:-1] for line in listed[1:]] == [["1", "10", "B"], *[["-", "-"]] * 3, ["1", "10", "B"]]
    rows = sealed("receipt", "list", "--json").json["receipts"]
    assert [(each["files"], each["bytes"]) for each in rows] == [(1, 10), (0, 0), (0, 0), (0, 0), (1, 10)]


@pytest.mark.parametrize(("request_id", "columns"), [("7" * 25, ["topic", "request"]), (LONG, ["topic"])])
def test_a_narrow_terminal_has_no_line_of_the_list_in_two(
    keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch, request_id: str, columns: Sequence[str]
) -> None:
    """One receipt of a request made it 88 characters wide."""
    purged = {"topic": "users", "files": [{"path": "file:///x/a.parquet", "bytes": 10_000_000}], "held_files": []}
    open_home(home).receipts.chain.append([Draft("5f2c", "purge", AT_MS, purged), of("users", request_id)])
    monkeypatch.setattr(output, "room", lambda: 80)
    listed = keptlog("receipt", "list").out.splitlines()
    assert [line for line in listed if len(line) > 80] == []
    assert listed[0].split() == ["number", "done", "kind", *columns]


def test_where_no_receipt_is_of_a_request_the_list_has_no_column_of_them(keptlog: Run, home: Path) -> None:
    open_home(home).receipts.chain.append([Draft("5f2c", "purge", AT_MS, {"topic": "users", "files": []})])
    assert "request" not in keptlog("receipt", "list").out


def test_the_list_can_be_of_one_request_also_of_one_that_ended_with_its_topic(sealed: Run) -> None:
    assert numbers(sealed, "--request", LONG) == [2]
    assert numbers(sealed, "--request", "r1") == [3, 4]
    assert numbers(sealed, "--request", "r1", "--topic", "orders") == [4]
    assert numbers(sealed, "--request", "q1") == [5]
    assert sealed("receipt", "list", "--request", "r2").out == "no receipts of request r2\n"
    assert sealed("receipt", "list", "--topic", "b", "--request", "r2").out == "no receipts of b, of request r2\n"


def test_a_receipt_is_shown_by_the_id_of_its_request(sealed: Run) -> None:
    assert sealed("receipt", "show", LONG).out.startswith("receipt 2: erasure of topic users\n")
    assert sealed("receipt", "show", "q1").out.startswith("receipt 5: deletion of topic users\n")


def test_a_request_with_several_receipts_names_them(sealed: Run) -> None:
    shown = sealed("receipt", "show", "r1")
    told = "keptlog: 2 receipts are of request 'r1': 3 of users, 4 of orders: show one by its number\n"
    assert (shown.code, shown.out, shown.err) == (2, "", told)


def test_the_way_to_the_receipt_of_a_request_whose_id_is_the_number_of_another_one_leads_there(
    sealed: Run, home: Path
) -> None:
    """It led to receipt 2, which is about something else."""
    open_home(home).create_topic("users")
    open_home(home).receipts.chain.append([of("users", "2")])
    [way] = re.findall(r" \(keptlog (.*)\)$", sealed("erasure", "show", "2").err)
    listed = sealed(*shlex.split(way), "--json").json["receipts"]
    assert [(each["number"], each["request"]) for each in listed] == [(6, "2")]


def test_a_damaged_receipt_keeps_nobody_from_the_one_of_a_request_but_none_is_not_said(sealed: Run, home: Path) -> None:
    """Nor that there is but one: the damaged one may be of the same request, and that was kept from people."""
    [path] = home.rglob("000000000001-*.json")
    path.write_text("{")
    for options in ((), ("--json",)):
        shown = sealed("receipt", "show", LONG, *options)
        assert (shown.code, LONG in shown.out) == (1, True)
        assert shown.err.startswith(f"keptlog: there may be more of request '{LONG}': the file of receipt 1, ")
    several = sealed("receipt", "show", "r1")
    assert (several.code, "by its number; there may be more of request 'r1': the file of" in several.err) == (2, True)
    nobody = sealed("receipt", "show", "nobody")
    assert (nobody.code, "receipt 1" in nobody.err, "there is no receipt" in nobody.err) == (1, True, False)


def test_a_library_is_not_told_that_a_receipt_is_the_only_one_of_a_request_while_others_are_damaged(
    sealed: Run, home: Path
) -> None:
    [path] = home.rglob("000000000001-*.json")
    path.write_text("{")
    with pytest.raises(LogCorrupt, match="there may be more of request"):
        open_home(home).receipts.show(LONG)


@pytest.mark.parametrize("option", ["--topic", "--request"])
def test_receipts_that_are_not_asked_for_are_read_and_not_written_again_to_compare_them(
    sealed: Run, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    """That is most of the time of a list. Only before none is said they are: one may have been what is asked for."""
    written: list[int] = []

    def noted(value: Mapping[str, Any]) -> bytes:
        written.append(value["sequence"])
        return canonical(value)

    monkeypatch.setattr("keptlog.receipts.receipt.canonical", noted)
    assert numbers(sealed, option, {"--topic": "orders", "--request": "r1"}[option])[-1] == 4
    assert 1 not in written
    assert sealed("receipt", "list", option, "nobody").out.startswith("no receipts of ")
    assert set(written) == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("damage", ["{", "{}", " %s"])
def test_a_damaged_receipt_is_told_whoever_asks_for_others(sealed: Run, home: Path, damage: str) -> None:
    [path] = home.rglob("000000000003-*.json")
    path.write_text(damage.replace("%s", path.read_text()))
    for option in (("--request", "r1"), ("--topic", "users"), ()):
        listed = sealed("receipt", "list", *option)
        assert (listed.code, "the file of receipt 3, " in listed.err) == (1, True)


@pytest.mark.parametrize("words", [("list", "--request", "q1"), ("list", "--topic", "orders"), ("show", "q1")])
def test_none_is_not_said_where_an_editor_has_changed_what_a_receipt_is_about(
    sealed: Run, home: Path, words: Sequence[str]
) -> None:
    """Its file said so in other bytes than keptlog writes, and "no receipts of request q1" came with exit code 0."""
    for number, said, changed in ((4, '"orders"', '"other"'), (5, '"q1"', '"q9"')):
        [path] = home.rglob(f"{number:012}-*.json")
        path.write_text(path.read_text().replace(said, changed).replace("\n ", "\n  "))
    listed = sealed("receipt", *words)
    assert (listed.code, listed.out) == (1, "")
    assert "the file of receipt 5, " in listed.err


@pytest.mark.parametrize("topics", ["5", "true", '{"users": 1}'])
def test_a_receipt_that_names_no_topic_where_it_should_is_told_as_damaged(sealed: Run, home: Path, topics: str) -> None:
    """A list of a topic ended with a traceback there."""
    [path] = home.rglob("000000000003-*.json")
    path.write_text(path.read_text().replace('"topic": "users"', f'"topics":{topics}'))
    for option in (("--topic", "users"), ("--request", LONG), ()):
        listed = sealed("receipt", "list", *option)
        assert (listed.code, "the file of receipt 3, " in listed.err) == (1, True)


def test_a_request_that_is_verified_names_its_receipt_and_one_that_is_forgotten_the_way_to_it(
    keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(home)
    world.create()
    world.append((KEY, VALUE), (OTHER, b"1"))
    world.ask(id=LONG)
    assert keptlog("erasure", "show", LONG, "--json").json["erasures"][0]["receipt"] is None
    world.bring_on()
    world.verified()
    [receipt] = world.receipts
    assert f"  receipt      keptlog receipt show {receipt.id}\n" in keptlog("erasure", "show", LONG).out
    assert keptlog("erasure", "show", LONG, "--json").json["erasures"][0]["receipt"] == receipt.id

    world.later(40 * DAY_MS)
    world.append((OTHER, b"2"))
    world.ask(OTHER, id="later")
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(world.now_ms))
    forgotten = keptlog("erasure", "show", LONG)
    way = f"receipts have those that ended (keptlog receipt list --request '{LONG}')\n"
    assert (forgotten.code, forgotten.err.endswith(way)) == (2, True)
    assert keptlog("receipt", "show", LONG).out.startswith(f"receipt {receipt.sequence}: erasure of topic users\n")
