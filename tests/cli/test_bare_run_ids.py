"""A run id that a keptlog from before gave a change bare stands for that change still: repeated, it deletes no more."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Outcome, Run

Lines = Callable[..., str]
Age = Callable[[], None]
DELETE = ("delete-records", "users", "0", "--run-id", "night-1")
TRUNCATE = ("truncate", "users-0", "7", "--run-id", "cut-7")


@contextmanager
def an_older_keptlog(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Deletions and truncations have the bare run id, and what a truncation did is not noted."""
    with monkeypatch.context() as before:
        before.setattr("keptlog.table.metadata.change.commit_id_for", lambda run_id, _operation, _partition: run_id)
        before.setattr("keptlog.table.changes.truncate.TRUNCATED", "not-noted")
        yield


@pytest.fixture(params=["in its snapshot", "expired", "expired by a keptlog that did not note operations"])
def age(request: pytest.FixtureRequest, keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> Age:
    """Lets a purge expire what was done up to now, or not; the last snapshot always stays."""

    def expire() -> None:
        if request.param == "in its snapshot":
            return
        with monkeypatch.context() as later:
            later.setenv("KEPTLOG_NOW_MS", str(2**45))
            assert keptlog("purge", "--orphan-grace-ms", str(2**50)).code == 0
        [path] = (home / "warehouse").rglob("receipts/runs/*.json")
        if request.param != "expired":
            remembered = json.loads(path.read_text())
            remembered["changes"] = [{**each, "operation": None} for each in remembered["changes"]]
            path.write_text(json.dumps(remembered))

    return expire


def append_four(keptlog: Run, lines: Lines) -> None:
    batch = lines(*({"key": key, "value": "1", "partition": 0} for key in "abcd"))
    assert keptlog("append", "users", "--file", batch).code == 0


def values(keptlog: Run) -> int:
    return len(keptlog("read", "users").json_lines)


def test_a_deletion_in_a_topic_with_one_partition_is_found_and_deletes_no_more(
    keptlog: Run, lines: Lines, monkeypatch: pytest.MonkeyPatch, age: Age
) -> None:
    keptlog("topic", "create", "users")
    append_four(keptlog, lines)
    with an_older_keptlog(monkeypatch):
        first = keptlog(*DELETE, "--json", "--", "-1").json
    append_four(keptlog, lines)
    age()

    preview = keptlog(*DELETE, "--dry-run", "--", "-1").out
    assert preview == "users-0 begins at offset 4 already: nothing would be deleted\n"
    assert keptlog(*DELETE, "--json", "--", "-1").json == first | {"is_repeated": True}
    assert values(keptlog) == 4


def test_a_deletion_of_which_nobody_knows_the_partition_is_refused_and_deletes_nothing(
    keptlog: Run, lines: Lines, monkeypatch: pytest.MonkeyPatch, age: Age
) -> None:
    keptlog("topic", "create", "users", "--partitions", "2")
    append_four(keptlog, lines)
    with an_older_keptlog(monkeypatch):
        keptlog(*DELETE, "--", "-1")
    append_four(keptlog, lines)
    age()

    for refused in (keptlog(*DELETE, "--", "-1"), keptlog(*DELETE, "--dry-run", "--", "-1")):
        assert refused.code == 2
        assert "run id night-1 has deleted records of topic users before" in refused.err
        assert refused.err.endswith("nothing was deleted now, use another run id\n")
    assert values(keptlog) == 4


def test_a_truncation_is_refused_and_truncates_nothing(
    keptlog: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age: Age
) -> None:
    assert keptlog("topic", "create", "users").code == 0
    keys = [str(number) for number in range(10)]
    table = pa.table({"key": keys, "value": keys, "offset": range(10), "partition": [0] * 10})
    pq.write_table(table, tmp_path / "users.parquet")

    def ingest() -> Outcome:
        return keptlog("append", "users", "--file", "users.parquet", "--column", "offset=offset", "--skip-existing")

    assert ingest().code == 0
    with an_older_keptlog(monkeypatch):
        assert keptlog(*TRUNCATE).code == 0
    assert ingest().code == 0
    age()

    for refused in (keptlog(*TRUNCATE), keptlog(*TRUNCATE, "--dry-run")):
        assert refused.code == 2
        assert "run id cut-7 has truncated a log of topic users before" in refused.err
        assert refused.err.endswith("nothing was truncated now, use another run id\n")
    assert values(keptlog) == 10


def test_an_append_under_a_run_id_stands_for_no_deletion(keptlog: Run, lines: Lines, age: Age) -> None:
    keptlog("topic", "create", "users")
    batch = lines({"key": "a", "value": "1"})
    assert keptlog("append", "users", "--file", batch, "--run-id", "night-1").code == 0
    append_four(keptlog, lines)
    age()

    assert keptlog(*DELETE, "--json", "--", "-1").json["is_repeated"] is False
    assert values(keptlog) == 0
