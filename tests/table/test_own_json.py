"""What a search takes for JSON of keptlog or Iceberg: each kind that they write, in older forms too, and no other."""

from __future__ import annotations

import json

import pytest

from keptlog.table.removal.own_json import is_own_json


@pytest.mark.parametrize(
    "stored",
    [
        {},  # a position of an older keptlog
        {"truncations": 0},
        {"truncations": 1, "has_begun": True},
        {"topic_id": "an-id", "changes": [{"sequence_number": 1}]},
        {"topic_id": "an-id", "entries": []},
        {"erasures": []},
        {"snapshots": [1], "segments": [{"path": "data/x", "bytes": 1}], "metadata": []},
        {"id": "an-id", "kind": "purge", "at_ms": 1, "content": {}},
        {"purged_at_ms": 1, "topic": "users", "expired_snapshots": [], "deleted_files": [], "not_deleted": []},
        {"format-version": 2, "location": "s3://bucket/users", "snapshots": []},
    ],
)
def test_each_kind_that_is_written_is_known(stored: object) -> None:
    assert is_own_json(json.dumps(stored).encode())


@pytest.mark.parametrize(
    "stored", [{"value": "x"}, {"truncations": 0, "value": "x"}, {"truncations": "x"}, {"snapshots": []}, [], ["x"]]
)
def test_no_other_is(stored: object) -> None:
    assert not is_own_json(json.dumps(stored).encode())
