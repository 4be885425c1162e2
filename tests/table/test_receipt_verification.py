"""Beside the files, ``receipt verify`` asks the catalog: was the chain cut off, put back or begun anew?"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt
from keptlog.passes.receipts import Receipts
from keptlog.receipts.chain import Flaw
from keptlog.receipts.signing import PublicKey
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.chain.receipt_chain import ReceiptChain
from keptlog.table.chain.receipt_files import HEAD_SHA256, LENGTH, all_folders
from keptlog.table.chain.sealed_receipts import SealedReceipts
from keptlog.table.chain.unopened_receipts import UnopenedReceipts
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.namespaces import RECEIPTS
from tests.receipts.chains import KEY
from tests.table.receipt_chains import chain_at, check, draft, ids, require_sound, stored


def unopened(home: Path) -> UnopenedReceipts:
    return UnopenedReceipts(home, TableFiles(), lambda: open_catalog(home))


def findings(chain: SealedReceipts) -> dict[Flaw, str]:
    return {finding.flaw: finding.text for finding in check(chain).findings}


def set_properties(chain: ReceiptChain, **properties: str) -> None:
    table = chain.table()
    assert table
    names = {"length": LENGTH, "head": HEAD_SHA256}
    changed = {names[name]: value for name, value in properties.items()}
    table.transaction().set_properties(changed).commit_transaction()


def test_a_table_that_somebody_has_cut_off_is_told_by_the_signed_head(tmp_path: Path) -> None:
    chain = chain_at(tmp_path)
    receipts = chain.append(draft(number) for number in range(4))
    set_properties(chain, length="2", head=receipts[1].sha256)
    found = findings(chain)
    assert "ends with receipt 4" in found[Flaw.OTHER_END]
    assert "somebody has changed the table" in found[Flaw.OTHER_END]


def test_a_chain_whose_first_writer_was_killed_or_is_at_work_has_no_receipts_and_is_sound(tmp_path: Path) -> None:
    chain = chain_at(tmp_path)
    chain._make_table()  # where a kill hits before the first receipt lands, and any look before that
    assert chain.table() is not None
    require_sound(chain)
    chain.append([draft(0), draft(1)])
    require_sound(chain)
    set_properties(chain, length="0")
    assert not check(chain).is_sound


def test_a_table_whose_properties_are_no_end_is_told(tmp_path: Path) -> None:
    chain = chain_at(tmp_path)
    chain.append([draft(0)])
    set_properties(chain, length="many")
    assert "chain.length='many'" in findings(chain)[Flaw.OTHER_END]


def test_a_head_that_is_gone_or_changed_is_told(tmp_path: Path) -> None:
    chain = chain_at(tmp_path)
    chain.append([draft(0)])
    (head,) = stored(chain)[0].parents[1].glob("heads/*")
    content = head.read_bytes()
    head.write_bytes(content.replace(b'"sequence": 1', b'"sequence": 2'))
    assert set(findings(chain)) >= {Flaw.DAMAGED, Flaw.NO_END}
    head.unlink()
    assert set(findings(chain)) == {Flaw.NO_END}
    head.write_bytes(content)
    require_sound(chain)


def test_a_catalog_that_was_put_back_is_told_and_what_had_landed_is_kept(tmp_path: Path) -> None:
    chain = chain_at(tmp_path)
    chain.append([draft(0)])
    shutil.copy(tmp_path / "catalog.db", tmp_path / "backup.db")
    for number in range(1, 4):
        chain.append([draft(number)])
    shutil.move(tmp_path / "backup.db", tmp_path / "catalog.db")
    put_back = chain_at(tmp_path)
    assert "receipts 2 to 3 had landed, and the catalog does not know that" in findings(put_back)[Flaw.PUT_BACK]
    assert [each.sequence for each in put_back.append([draft("new"), draft("newer"), draft("newest")])] == [2, 3, 4]
    assert len(stored(put_back)) == 7
    assert set(findings(put_back)) == {Flaw.PUT_BACK}


def test_what_a_killed_writer_left_is_no_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = chain_at(tmp_path)
    chain.append([draft(0)])

    class KilledError(BaseException):
        pass

    def die(*_: object) -> None:
        raise KilledError

    for name in ("a", "b"):
        monkeypatch.setattr(FileChange, "written", die)
        with pytest.raises(KilledError):
            chain_at(tmp_path).append([draft(name), draft(f"{name}-2")])
        monkeypatch.undo()
    assert len(stored(chain)) == 5
    require_sound(chain)
    chain.append([draft("a"), draft("b"), draft("c")])
    assert ids(chain_at(tmp_path)) == ["draft-0", "draft-a", "draft-b", "draft-c"]
    require_sound(chain)
    assert [each.sequence for each in chain_at(tmp_path).append([draft("b"), draft("b-2")])] == [3, 5]


def test_two_killed_writers_who_have_sealed_the_same_drafts_to_the_byte_are_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has built on his own file of a receipt, not on the other's."""
    chain = chain_at(tmp_path)
    chain.append([draft(0)])

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as killing:
        killing.setattr(FileChange, "written", die)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                chain_at(tmp_path).append([draft("a"), draft("b")])
    assert len(stored(chain)) == 5
    chain.append([draft("other")])
    require_sound(chain)


def test_a_writer_who_wakes_up_beside_the_look_and_seals_what_is_sealed_already_is_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two purges seal the same draft, to the byte; a third writer has built on it and was killed."""
    chain = chain_at(tmp_path)
    chain.append([draft(0)])
    (landed,) = stored(chain)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as killing:
        killing.setattr(FileChange, "written", die)
        with pytest.raises(KeyboardInterrupt):
            chain_at(tmp_path).append([draft(1)])

    def and_meanwhile(location: str) -> str:
        shutil.copy(landed, landed.with_name(f"{landed.name.partition('~')[0]}~{'0' * 32}.json"))
        return all_folders(location)

    monkeypatch.setattr("keptlog.table.chain.receipt_verification.all_folders", and_meanwhile)
    assert findings(chain) == {}
    assert len(stored(chain)) == 3


def test_a_chain_that_was_begun_anew_leaves_the_earlier_one_and_is_told(tmp_path: Path) -> None:
    chain = chain_at(tmp_path)
    chain.append([draft(0), draft(1)])
    chain.committer.catalog.drop_table((RECEIPTS, "chain"))
    anew = chain_at(tmp_path)
    assert [each.sequence for each in anew.append([draft(0)])] == [1]
    assert "2 receipts of an earlier chain, which the catalog no longer knows" in findings(anew)[Flaw.PUT_BACK]
    assert len(stored(anew)) == 3


def test_a_chain_that_was_taken_out_of_the_catalog_is_told_by_what_lies_in_its_place(tmp_path: Path) -> None:
    chain = chain_at(tmp_path)
    chain.append([draft(0), draft(1)])
    chain.committer.catalog.drop_table((RECEIPTS, "chain"))
    for without in (chain_at(tmp_path), unopened(tmp_path)):
        assert "2 receipts of an earlier chain, which the catalog no longer knows" in findings(without)[Flaw.PUT_BACK]
    chain.committer.catalog.drop_namespace(RECEIPTS)
    for without in (chain_at(tmp_path), unopened(tmp_path)):
        assert set(findings(without)) == {Flaw.PUT_BACK}


@pytest.mark.parametrize("look", [ids, SealedReceipts.head, lambda chain: chain.find("1")])
def test_receipts_that_the_catalog_has_lost_are_not_told_as_none(
    tmp_path: Path, look: Callable[[SealedReceipts], object]
) -> None:
    chain = chain_at(tmp_path)
    chain.append([draft(0)])
    chain.committer.catalog.drop_table((RECEIPTS, "chain"))
    for without in (chain_at(tmp_path), unopened(tmp_path)):
        with pytest.raises(LogCorrupt, match="1 receipt of an earlier chain, which the catalog no longer knows"):
            look(without)


def test_a_catalog_without_a_chain_proves_nothing_to_a_home_that_has_signed(tmp_path: Path) -> None:
    chain = chain_at(tmp_path)
    trusted: list[PublicKey] = []
    receipts = Receipts(chain, lambda: trusted)
    assert receipts.verify().is_sound
    chain.append([draft(0)])
    trusted.append(KEY.public)
    assert receipts.verify().is_sound
    chain.committer.catalog.drop_table((RECEIPTS, "chain"))
    shutil.rmtree(tmp_path / "warehouse")
    (finding,) = receipts.verify().findings
    assert (finding.flaw, KEY.public.key_id in finding.text) == (Flaw.NO_END, True)
