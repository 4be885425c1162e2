"""A configured catalog takes the place of a home's own: while that has topics, and the other none, nothing is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.overdue import DAY_MS, MINUTE_MS, NOW_MS, tell_of_an_overdue_erasure

OWN = "/catalog.db names 1 topic (users)"


@pytest.fixture
def configured(
    keptlog: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: Callable[[int], None]
) -> None:
    """A new catalog, configured for a home with an overdue erasure, of which people were told."""
    monkeypatch.setenv("KEPTLOG_NOTIFY_LOG", "true")
    tell_of_an_overdue_erasure(keptlog, at, tmp_path)
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path}/new.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path}/lake")


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize(
    "words",
    ["status", "verify", "purge", "clean", "retain", "plan", "erasure list", "topic list", "doctor --no-probes"],
)
def test_no_command_that_looks_at_all_topics_ends_well(keptlog: Run, words: str) -> None:
    told = keptlog(*words.split())
    text = " ".join((told.out + told.err).split())
    assert told.code != 0
    assert "has no topic and no namespace keptlog, but this home's own catalog" in text
    assert OWN in text
    assert "take the configuration out" in text


@pytest.mark.usefixtures("configured")
def test_doctor_blames_no_other_program(keptlog: Run) -> None:
    told = keptlog("doctor", "--no-probes").out
    assert "cause: another catalog is configured for a home that keeps topics in its own" in told
    assert "next:  do what it says" in told
    assert "changed by another program" not in told


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize(
    "words",
    [
        "topic describe users",
        "topic alter users --config segment.ms=1000",
        "topic delete users --yes",
        "history users",
        "append users --file {records}",
        "status users",
        "clean users",
        "read users",
        "explain users",
        "delete-records users 0 1 --yes",
        "erase users --key b --yes",
        "reader list users",
        "receipt list",
        "receipt list --topic users",
        "receipt show 1",
        "receipt export {folder}",
        "receipt verify",
    ],
)
def test_no_command_says_of_a_named_topic_or_receipt_that_there_is_none(
    keptlog: Run, tmp_path: Path, words: str
) -> None:
    told = keptlog(*words.format(records=tmp_path / "records.jsonl", folder=tmp_path / "receipts").split())
    text = " ".join((told.out + told.err).split())
    assert told.code != 0
    assert OWN in text
    assert "there is no" not in text


@pytest.mark.usefixtures("configured")
def test_nothing_that_people_were_told_of_is_over(
    keptlog: Run, at: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for minutes in (1, 40):
        at(NOW_MS + DAY_MS + minutes * MINUTE_MS)
        told = keptlog("notify", "--once")
        assert "is over" not in told.out + told.err
    assert "keptlog_up 0" in keptlog("metrics", "write", "-").out
    monkeypatch.delenv("PYICEBERG_CATALOG__KEPTLOG__URI")
    monkeypatch.delenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE")
    assert "users" in keptlog("topic", "list").out


@pytest.mark.usefixtures("configured")
def test_doctor_does_not_say_that_a_file_is_to_be_put_back(keptlog: Run) -> None:
    checks = {check["name"]: check for check in keptlog("doctor", "--no-probes", "--json").json["checks"]}
    assert [name for name, check in checks.items() if check["problems"]] == ["catalog"]
    [problem] = checks["catalog"]["problems"]
    assert problem["todo"] == "do what it says"


@pytest.mark.usefixtures("configured")
def test_once_the_configured_one_has_a_topic_doctor_hints_at_those_of_the_home(keptlog: Run) -> None:
    created = keptlog("topic", "create", "orders")
    assert created.code == 0
    assert OWN in created.err
    assert keptlog("topic", "list").code == 0
    checks = {check["name"]: check for check in keptlog("doctor", "--no-probes", "--json").json["checks"]}
    [hint] = checks["home"]["hints"]
    assert OWN in hint["what"]
    assert checks["home"]["diagnosis"] == "fine"
