"""A copy of a home knows of no receipt and no erasure that came since it was made: it says so, and proves nothing."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import urlparse

import pytest

from keptlog.home import open_home
from keptlog.table.catalogs.embedded import own_location
from keptlog.table.namespaces import RECEIPTS
from tests.cli.conftest import Run
from tests.table.stores import COMPACTED


@pytest.fixture(params=[0, 1])
def copy(
    keptlog: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Path:
    """One that was made when there were so many receipts; the original has another one since."""
    for topic in ("users", "gone-0", "gone-1"):
        open_home().store.create_topic(topic, 1, COMPACTED)
    for number in range(request.param):
        assert keptlog("topic", "delete", f"gone-{number}", "--yes").code == 0
    shutil.copytree(home, tmp_path / "copy")
    assert keptlog("topic", "delete", f"gone-{request.param}", "--yes").code == 0
    monkeypatch.setenv("KEPTLOG_HOME", str(tmp_path / "copy"))
    return tmp_path / "copy"


def test_a_copy_does_not_say_that_no_receipt_is_missing(keptlog: Run, copy: Path, home: Path) -> None:
    verified = keptlog("receipt", "verify")
    assert verified.code == 1
    assert "none is missing" not in verified.out
    assert f"no end: home {copy} is a copy of the home at {home}" in verified.out
    assert "What was sealed there since is not looked at" in verified.out
    assert not keptlog("receipt", "verify", "--json").json["is_sound"]


def test_a_copy_says_so_where_a_variable_may_configure_another_catalog(
    keptlog: Run, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_MAX_WORKERS", "4")
    verified = keptlog("receipt", "verify")
    assert verified.code == 1
    assert f"no end: home {copy} is a copy" in verified.out


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_who_asks_a_copy_for_its_erasures_is_told_that_it_is_one(
    keptlog: Run, copy: Path, home: Path, options: list[str]
) -> None:
    told = keptlog("erasure", "list", "users", *options)
    assert told.code == 1
    [line] = told.err.splitlines()
    assert line.startswith(f"keptlog: home {copy} is a copy of the home at {home}")


def test_the_original_says_nothing_of_it(keptlog: Run, copy: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPTLOG_HOME", str(home))
    assert copy.exists()
    for command in (["receipt", "verify"], ["receipt", "list"], ["erasure", "list"]):
        told = keptlog(*command)
        assert (told.code, told.err) == (0, "")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_who_lists_or_exports_the_receipts_of_a_copy_is_told_that_later_ones_are_not_among_them(
    keptlog: Run, copy: Path, home: Path, tmp_path: Path, options: list[str]
) -> None:
    for command in (["receipt", "list"], ["receipt", "export", str(tmp_path / "exported")]):
        told = keptlog(*command, *options)
        assert told.code == 1
        [line] = told.err.splitlines()
        assert line.startswith(f"keptlog: home {copy} is a copy of the home at {home}")


@pytest.mark.parametrize("options", [[], ["--json"]])
@pytest.mark.parametrize("what", ["erasure", "receipt"])
def test_what_a_copy_does_not_know_may_be_in_its_original(
    keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch, what: str, options: list[str]
) -> None:
    open_home().store.create_topic("users", 1, COMPACTED)
    copied = shutil.copytree(home, home.parent / "copy")
    monkeypatch.setenv("KEPTLOG_HOME", str(copied))
    told = keptlog(what, "show", "later", *options)
    assert told.code == 1
    [line] = told.err.splitlines()
    assert line.startswith(f"keptlog: there is no {what} 'later'")
    assert f"this copy does not know what came since it was made: home {copied} is a copy of the home at {home}" in line
    assert not options or "this copy does not know" in told.json["errors"][0]["message"]
    monkeypatch.setenv("KEPTLOG_HOME", str(home))
    original = keptlog(what, "show", "later", *options)
    assert (original.code, "copy" in original.err) == (2, False)


def test_a_copy_whose_original_has_let_go_of_its_receipts_says_that_once_and_doctor_blames_no_setting(
    keptlog: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for topic in ("users", "gone-0", "gone-1"):
        open_home().store.create_topic(topic, 1, COMPACTED)
    assert keptlog("topic", "delete", "gone-0", "--yes").code == 0
    shutil.copytree(home, tmp_path / "copy")
    named = own_location(home, (RECEIPTS, "chain"))
    assert keptlog("topic", "delete", "gone-1", "--yes").code == 0
    assert named
    Path(urlparse(named).path).unlink()  # as some twenty receipts later
    monkeypatch.setenv("KEPTLOG_HOME", str(tmp_path / "copy"))

    shown = keptlog("receipt", "show", "nothing")
    assert (shown.code, shown.err.count("copy of the home")) == (1, 1)

    problems = [each for check in keptlog("doctor", "--json").json["checks"] for each in check["problems"]]
    told = [each["cause"] for each in problems if "its receipts" in each["what"]]
    assert [cause[:30] for cause in told] == ["the original has gone on since"]


@pytest.mark.parametrize("before", [0, 1])
def test_what_the_original_has_sealed_since_is_no_catalog_that_was_put_back(
    keptlog: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """Whoever believed that would move receipts of the original away."""
    for topic in ("gone-0", "gone-1", "gone-2"):
        open_home().store.create_topic(topic, 1, COMPACTED)
    for number in range(3):
        if number == before:
            shutil.copytree(home, tmp_path / "copy")
        assert keptlog("topic", "delete", f"gone-{number}", "--yes").code == 0
    monkeypatch.setenv("KEPTLOG_HOME", str(tmp_path / "copy"))
    verified = keptlog("receipt", "verify", "--json").json
    assert [each["flaw"] for each in verified["findings"]] == ["no end"]
    [receipts] = [check for check in keptlog("doctor", "--json").json["checks"] if check["name"] == "receipts"]
    assert receipts["problems"] == []
