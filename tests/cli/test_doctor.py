"""``keptlog doctor``: its exit codes, what it says of a catalog, and that the docs say the same."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from keptlog.home import new_id, open_home
from keptlog.log.record import NewRecord
from keptlog.passes.doctor.home_doctor import CHECKS
from tests.cli.conftest import Run
from tests.readme.page import ROOT

DOCS = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")


def test_a_home_that_is_not_there_is_not_made(keptlog: Run, home: Path) -> None:
    said = keptlog("doctor", "--catalog")
    assert said.code == 2
    assert "there is no catalog here yet" in said.err
    assert not home.exists()


def test_a_catalog_that_keeps_everything_is_told_in_a_table_and_no_topic_is_touched(keptlog: Run, home: Path) -> None:
    keptlog("topic", "create", "users", "--config", "cleanup.policy=compact")
    before = {path: path.stat().st_mtime_ns for path in (home / "warehouse").rglob("*") if path.is_file()}
    said = keptlog("doctor", "--catalog", "--quiet")
    lines = said.out.splitlines()
    assert said.code == 0, said.out
    assert lines[0].split() == ["probe", "result", "seen"]
    assert lines[-1] == "EmbeddedCatalog: this catalog does what keptlog's guarantees rest on"
    assert any(line.startswith("compare and swap  kept") for line in lines)
    assert {path: path.stat().st_mtime_ns for path in (home / "warehouse").rglob("*") if path.is_file()} == before
    assert [row["topic"] for row in keptlog("topic", "list", "--json").json["topics"]] == ["users"]


def test_a_catalog_that_loses_updates_is_refused_with_what_was_seen_and_what_follows(
    keptlog: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__PY_CATALOG_IMPL", "tests.catalogs.wrong.FirstRowsLost")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__URI", f"sqlite:///{tmp_path / 'shared.db'}?timeout=30")
    monkeypatch.setenv("PYICEBERG_CATALOG__KEPTLOG__WAREHOUSE", f"file://{tmp_path / 'lake'}")
    said = keptlog("doctor", "--catalog", "--json")
    assert said.code == 1
    told = said.json
    assert (told["catalog"], told["answer"]) == ("FirstRowsLost", "broken")
    assert told["verdict"] == "this catalog loses or mixes up updates (empty table): keep no topics in it"
    [broken] = [each for each in told["probes"] if each["answer"] == "broken"]
    assert "are not there" in broken["seen"]
    assert "keep no topic in this catalog" in broken["follows"]
    assert (told["swept"], told["left"], told["hints"]) == ([], [], [])


def test_a_check_that_stops_in_an_unforeseen_way_says_so_and_no_other_suffers(
    keptlog: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended all of it in a traceback."""
    keptlog("topic", "create", "users", "--config", "cleanup.policy=compact")
    before = {each["name"]: each["not_looked_at"] for each in keptlog("doctor", "--json").json["checks"]}

    def strange(*_: object) -> None:
        raise OverflowError("int too large")

    monkeypatch.setattr("keptlog.passes.doctor.home_doctor.timestamp_problems", strange)
    said = keptlog("doctor", "--json")
    after = {each["name"]: each["not_looked_at"] for each in said.json["checks"]}
    assert said.code == 1
    assert after == before | {"timestamps": ["it stopped at OverflowError: int too large; report it if it stays"]}


@pytest.mark.parametrize(
    ("where", "told_by"),
    [
        ("keptlog.table.store.LogStore.topics", "topics"),
        ("keptlog.passes.doctor.home_patient.elsewheres", "topics"),
        ("keptlog.passes.doctor.home_patient.require_entry", "home"),
    ],
)
def test_what_all_checks_look_at_stops_in_an_unforeseen_way_and_who_needs_it_says_so(
    keptlog: Run, monkeypatch: pytest.MonkeyPatch, where: str, told_by: str
) -> None:
    """The check said so, and the look for the topics that it has not looked at ended all of it in a traceback."""
    keptlog("topic", "create", "users", "--config", "cleanup.policy=compact")

    def strange(*_: object) -> None:
        raise OverflowError("int too large")

    monkeypatch.setattr(where, strange)
    said = keptlog("doctor", "--json")
    not_looked_at = {each["name"]: each["not_looked_at"] for each in said.json["checks"]}
    assert said.code == 1
    assert not_looked_at[told_by] == ["it stopped at OverflowError: int too large; report it if it stays"]
    assert not_looked_at["timestamps"] == not_looked_at[told_by]
    assert len(not_looked_at) == len(CHECKS) - 1  # the catalog was not to be probed


def test_of_many_problems_alike_a_few_are_told_and_the_others_are_counted(keptlog: Run) -> None:
    store = open_home().store
    old_ms = time.time_ns() // 1_000_000 - 86_400_000
    for topic, partitions in (("users", 12), ("orders", 1)):
        store.create_topic(topic, partitions, {"cleanup.policy": "compact", "max.compaction.lag.ms": "1000"})
        records = [NewRecord(b"k", b"v", old_ms, number) for number in range(partitions)]
        store.append(topic, records, new_id(), old_ms)
    said = keptlog("doctor", "--quiet").out
    assert said.count("cause: no clean has come since it was due") == 5
    assert "8 more problems with the same cause and next step: users-" in said
    assert " and 5 more (--json tells each)" in said
    assert said.splitlines()[-1].endswith(": 13 problems")
    [conditions] = [each for each in keptlog("doctor", "--json").json["checks"] if each["name"] == "conditions"]
    assert len(conditions["problems"]) == 13


@pytest.mark.parametrize(
    ("named", "documented"),
    [
        ("s3://lake", (2, "`KEPTLOG_HOME` is no path of this machine, such as `s3://lake`")),
        ("a-file", (1, "A home that is a file, or is not there, is a problem")),
        ("not-there", (1, "A home that is a file, or is not there, is a problem")),
    ],
)
def test_a_path_is_looked_at_whatever_is_there_and_the_docs_say_with_which_exit_code(
    keptlog: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, documented: tuple[int, str]
) -> None:
    code, words = documented
    (tmp_path / "a-file").touch()
    monkeypatch.setenv("KEPTLOG_HOME", named)
    assert keptlog("doctor", "--quiet").code == code
    [row] = [line for line in DOCS.splitlines() if line.startswith(f"| {code} |")]
    assert words in row


def test_every_check_is_in_the_docs_in_the_same_words() -> None:
    for check in CHECKS:
        assert f"| `{check.name}` | {check.asks.replace('keptlog notify', '`keptlog notify`')} |" in DOCS
