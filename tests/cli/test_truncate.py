"""``keptlog truncate`` says what it removes, and leaves alone what can't be read again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Run


@pytest.fixture
def users(keptlog: Run, tmp_path: Path) -> str:
    """Comes from elsewhere, with offsets 0 to 9."""
    assert keptlog("topic", "create", "users", "--config", "cleanup.policy=compact").code == 0
    keys = [str(number) for number in range(10)]
    table = pa.table({"key": keys, "value": keys, "offset": range(10), "partition": [0] * 10})
    pq.write_table(table, tmp_path / "users.parquet")
    assert keptlog("append", "users", "--file", "users.parquet", "--column", "offset=offset").code == 0
    return "users"


def test_it_says_what_goes_and_then_reads_on(keptlog: Run, users: str) -> None:
    preview = keptlog("truncate", "users-0", "7", "--dry-run")
    assert preview.out == "users-0 would end at offset 7 instead of 10; 3 records would go\n"
    assert keptlog("truncate", users, "0", "7", "--dry-run", "--json").json["records"] == 3
    assert len(keptlog("read", users).json_lines) == 10
    assert keptlog("truncate", "users-0", "7").out == "users-0 ends at offset 7 instead of 10; 3 records went\n"
    assert keptlog("truncate", "users-0", "7").out == "users-0 ends at offset 7: there is nothing to remove\n"
    assert keptlog("truncate", "users-0", "5", "--json").json["log_end_offset"] == 5
    again = keptlog("append", users, "--file", "users.parquet", "--column", "offset=offset", "--skip-existing")
    assert again.code == 0
    assert [each["offset"] for each in keptlog("read", users).json_lines] == list(range(10))
    assert keptlog("verify", users).code == 0


def test_a_run_that_has_truncated_truncates_no_more_whatever_was_read_again(
    keptlog: Run, users: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = keptlog("truncate", "users-0", "7", "--run-id", "cut-7", "--json").json
    assert (first["is_repeated"], first["records"]) == (False, 3)
    keptlog("append", users, "--file", "users.parquet", "--column", "offset=offset", "--skip-existing")

    assert keptlog("truncate", "users-0", "7", "--run-id", "cut-7", "--json").json == first | {"is_repeated": True}
    with monkeypatch.context() as later:
        later.setenv("KEPTLOG_NOW_MS", str(2**45))
        assert keptlog("purge", "--orphan-grace-ms", str(2**50), "--json").json["topics"]["users"]["expired_snapshots"]
    said = keptlog("truncate", "users-0", "7", "--run-id", "cut-7").out
    preview = keptlog("truncate", "users-0", "7", "--run-id", "cut-7", "--dry-run")
    assert (preview.code, preview.out) == (0, said)

    assert said == "run cut-7 has truncated it before: users-0 ends at offset 7 instead of 10; 3 records went\n"
    assert len(keptlog("read", users).json_lines) == 10


def test_what_was_appended_is_not_truncated(keptlog: Run, tmp_path: Path) -> None:
    keptlog("topic", "create", "own")
    (tmp_path / "own.jsonl").write_text('{"key": "a", "value": "1"}\n')
    keptlog("append", "own", "--file", "own.jsonl")
    refused = keptlog("truncate", "own-0", "0")
    assert (refused.code, refused.out) == (2, "")
    assert "own-0 can't be truncated to offset 0: its records were appended" in refused.err
    assert len(keptlog("read", "own").json_lines) == 1
