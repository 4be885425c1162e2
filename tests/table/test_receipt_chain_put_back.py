"""A program that keeps its home open notices that the chain was put back, however long it is by now."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.table.chain.receipt_chain import ReceiptChain
from keptlog.table.io.files import TableFiles
from tests.table.receipt_chains import chain_at, draft, ids, require_sound


def put_back(home: Path, sealed_since: Iterable[str]) -> ReceiptChain:
    """A chain that has sealed "erasure" behind two others, over the catalog of before, in which others seal then."""
    long_lived = chain_at(home)
    long_lived.append([draft(1), draft(2)])
    backup = home.with_name("backup.db")
    shutil.copy(home / "catalog.db", backup)
    long_lived.append([draft("erasure")])
    backup.replace(home / "catalog.db")
    for each in sealed_since:
        chain_at(home).append([draft(each)])
    return long_lived


@pytest.mark.parametrize("sealed_since", [[], ["a"], ["a", "b"], ["a", "b", "c"]], ids=len)
def test_what_the_chain_has_lost_is_sealed_again_and_told_under_its_true_number(
    tmp_path: Path, sealed_since: list[str]
) -> None:
    home = tmp_path / "home"
    long_lived = put_back(home, sealed_since)
    (receipt,) = long_lived.append([draft("erasure")])
    number = 3 + len(sealed_since)
    assert (receipt.id, receipt.sequence) == ("draft-erasure", number)
    assert ids(chain_at(home))[number - 1] == "draft-erasure"
    require_sound(chain_at(home))


@pytest.mark.parametrize("times", [1, 2, 30])
def test_it_is_noticed_too_where_the_storage_did_not_answer_when_it_was_asked_for_the_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    home = tmp_path / "home"
    long_lived = put_back(home, "abc")
    read = TableFiles.read_bytes
    left = [None] * times

    def silent(files: TableFiles, path: str) -> bytes:
        if "000000004-" in path and left:
            left.pop()
            raise TimeoutError("no answer")
        return read(files, path)

    monkeypatch.setattr(TableFiles, "read_bytes", silent)
    with contextlib.suppress(StorageUnavailable):
        long_lived.append([draft("erasure")])
    left.clear()
    (receipt,) = long_lived.append([draft("erasure")])
    assert (receipt.id, receipt.sequence) == ("draft-erasure", 6)
    assert ids(chain_at(home))[5:] == ["draft-erasure"]
    require_sound(chain_at(home))


def test_a_chain_that_others_went_on_with_is_not_listed_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long_lived = chain_at(tmp_path)
    long_lived.append([draft(1), draft(2)])
    chain_at(tmp_path).append([draft("a"), draft("b")])
    table = long_lived.table()
    assert table
    known = long_lived.known(table)
    long_lived.append([draft(3)])
    assert long_lived._known is known
    assert [each.sequence for each in long_lived.append([draft("a"), draft(3)])] == [3, 5]
