"""Receipts that share a long list are sealed without a copy of it for each, and read back as any other."""

from __future__ import annotations

from pathlib import Path

from keptlog.receipts.receipt import Draft
from tests.table.receipt_chains import chain_at


def test_a_long_list_that_many_share_is_held_once(tmp_path: Path) -> None:
    """Each erasure that one search has proved has the list of all files that were looked through."""
    files = [{"path": f"file:///topic/{number}.parquet", "bytes": number, "crc32": None} for number in range(3)]
    drafts = [Draft(f"erasure-{number}", "erasure", 1, {"topic": "users", "files": files}) for number in range(3)]
    sealed = chain_at(tmp_path).append(drafts)
    assert all(each.content["files"] is files for each in sealed)
    assert sealed == list(chain_at(tmp_path).receipts())


def test_what_json_can_not_tell_apart_is_given_as_it_can_be_read(tmp_path: Path) -> None:
    (sealed,) = chain_at(tmp_path).append([Draft("purge", "purge", 1, {"topic": "users", "files": ("a", "b")})])
    assert sealed.content["files"] == ["a", "b"]
