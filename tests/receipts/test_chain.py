"""Whoever changes, drops, swaps, cuts off or mixes receipts is found out, and what it was is named."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.receipts.chain import HEAD_FILE, ChainVerification, Flaw, name_of, sealed, signed_head
from keptlog.receipts.receipt import Receipt
from keptlog.receipts.signing import SigningKey
from tests.receipts.chains import KEY, LENGTH, OTHER_KEY, VERSION, draft, files_of, receipts, verified


def flaws(verification: ChainVerification) -> set[Flaw]:
    return {finding.flaw for finding in verification.findings}


def texts(verification: ChainVerification) -> str:
    return "\n".join(finding.text for finding in verification.findings)


def without(files: dict[str, bytes], names: Collection[str]) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if name not in names}


def test_a_whole_chain_is_sound() -> None:
    found = verified(files_of(receipts()))
    assert found.is_sound, texts(found)
    assert (found.receipts, found.first, found.last, found.key_ids) == (20, 1, 20, (KEY.public.key_id,))


@pytest.mark.parametrize("name", [name_of(receipts(2)[0]), name_of(receipts(2)[1]), HEAD_FILE])
def test_each_byte_that_is_flipped_is_found_and_its_file_named(name: str) -> None:
    files = files_of(receipts(2))
    content = files[name]
    for position in range(len(content)):
        for flipped in {content[position] ^ 1, content[position] ^ 0x20, content[position] ^ 0xFF}:
            changed = content[:position] + bytes([flipped]) + content[position + 1 :]
            found = verified(files | {name: changed})
            assert any(name in finding.files for finding in found.findings), (position, flipped, texts(found))


@given(st.data())
def test_any_other_content_of_a_file_is_found_and_named(data: st.DataObject) -> None:
    files = files_of(receipts(5))
    name = data.draw(st.sampled_from(sorted(files)))
    content = files[name]
    first = data.draw(st.integers(0, len(content)))
    last = data.draw(st.integers(first, len(content)))
    put = data.draw(st.binary(max_size=20) | st.just(content[first : first + 7]))
    changed = content[:first] + put + content[last:]
    found = verified(files | {name: changed})
    assert found.is_sound if changed == content else any(name in each.files for each in found.findings)


@pytest.mark.parametrize("number", range(1, LENGTH + 1))
def test_each_receipt_that_is_dropped_is_named_by_its_number(number: int) -> None:
    chain = receipts()
    found = verified(without(files_of(chain), [name_of(chain[number - 1])]))
    assert flaws(found) == {Flaw.MISSING}
    assert texts(found) == f"receipt {number} is missing"
    assert found.findings[0].sequences == (number, number)


@given(st.sets(st.integers(1, LENGTH), min_size=1))
def test_however_many_are_dropped_all_their_numbers_are_told(dropped: set[int]) -> None:
    chain = receipts()
    found = verified(without(files_of(chain), {name_of(chain[number - 1]) for number in dropped}))
    assert flaws(found) == {Flaw.MISSING}
    pairs = found.findings[0].sequences
    assert {n for low, high in zip(pairs[::2], pairs[1::2], strict=True) for n in range(low, high + 1)} == dropped


@given(st.sets(st.integers(1, LENGTH), min_size=2, max_size=2))
def test_two_that_are_swapped_are_both_named(numbers: set[int]) -> None:
    chain = receipts()
    files = files_of(chain)
    one, two = (name_of(chain[number - 1]) for number in sorted(numbers))
    found = verified(files | {one: files[two], two: files[one]})
    assert flaws(found) == {Flaw.SWAPPED}
    assert {finding.files for finding in found.findings} == {(one,), (two,)}


def signed_anew(number: int, key: SigningKey) -> Receipt:
    chain = receipts()
    other = draft(number, "b")
    return sealed(other, number, chain[number - 1].previous_sha256, key, VERSION)


@pytest.mark.parametrize("number", [1, 7, LENGTH])
def test_one_that_was_signed_anew_by_a_foreign_key_is_found_by_its_key(number: int) -> None:
    chain = receipts()
    files = without(files_of(chain), [name_of(chain[number - 1])])
    other = signed_anew(number, OTHER_KEY)
    found = verified(files | {name_of(other): other.to_bytes()})
    assert Flaw.UNKNOWN_KEY in flaws(found)
    assert f"receipt {number} is signed with key {OTHER_KEY.public.key_id}, which is not known" in texts(found)


@pytest.mark.parametrize("key", [KEY, OTHER_KEY])
@pytest.mark.parametrize("number", [1, 7, LENGTH])
def test_one_that_was_signed_anew_by_a_trusted_key_is_found_by_the_one_behind_it(number: int, key: SigningKey) -> None:
    chain = receipts()
    files = without(files_of(chain), [name_of(chain[number - 1])])
    other = signed_anew(number, key)
    found = verified(files | {name_of(other): other.to_bytes()}, KEY, OTHER_KEY)
    assert flaws(found) == {Flaw.OTHER_END if number == LENGTH else Flaw.NOT_LINKED}
    assert str(number) in texts(found)


def test_a_receipt_that_pretends_to_a_known_key_is_damaged() -> None:
    chain = receipts(3)
    forged = sealed(draft(2, "b"), 2, chain[0].sha256, OTHER_KEY, VERSION).to_bytes()
    forged = forged.replace(OTHER_KEY.public.key_id.encode(), KEY.public.key_id.encode())
    found = verified(files_of(chain) | {name_of(chain[1]): forged})
    assert flaws(found) == {Flaw.DAMAGED}
    assert name_of(chain[1]) in texts(found)
    assert f"is not what key {KEY.public.key_id} has signed" in texts(found)


@pytest.mark.parametrize("count", [1, 5, LENGTH - 1, LENGTH])
def test_a_chain_that_was_cut_off_lacks_what_the_head_names(count: int) -> None:
    chain = receipts()
    cut = {name_of(each) for each in chain[-count:]}
    found = verified(without(files_of(chain), cut))
    assert flaws(found) == {Flaw.MISSING}
    assert found.findings[0].sequences == (LENGTH - count + 1, LENGTH)


def test_a_chain_that_was_cut_off_with_its_head_can_not_be_told_to_be_whole() -> None:
    found = verified(files_of(receipts()[:15], with_head=False))
    assert flaws(found) == {Flaw.NO_END}
    assert "whether receipts are missing at the end can't be told" in texts(found)


def test_a_head_that_is_older_than_the_receipts_does_not_tell_the_end() -> None:
    chain = receipts()
    found = verified(files_of(chain, with_head=False) | {HEAD_FILE: signed_head(chain[9], KEY).to_bytes()})
    assert flaws(found) == {Flaw.NO_END}
    assert "the head ends with receipt 10 and is older than receipts 11 to 20" in texts(found)


def test_of_several_heads_all_must_fit_and_the_newest_tells_the_end() -> None:
    chain = receipts()
    older = {"earlier/head.json": signed_head(chain[9], KEY).to_bytes()}
    assert verified(files_of(chain) | older).is_sound
    other = {"earlier/head.json": signed_head(receipts(10, home="b")[-1], KEY).to_bytes()}
    found = verified(files_of(chain) | other)
    assert flaws(found) == {Flaw.OTHER_END}
    assert "earlier/head.json" in texts(found)


def test_a_head_of_a_foreign_key_tells_no_end() -> None:
    chain = receipts()
    found = verified(files_of(chain, with_head=False) | {HEAD_FILE: signed_head(chain[-1], OTHER_KEY).to_bytes()})
    assert flaws(found) == {Flaw.UNKNOWN_KEY, Flaw.NO_END}
    assert "the key of the head is not known: whether receipts are missing at the end can't be told" in texts(found)
    assert "head.json" not in texts(found)


def test_two_chains_that_are_mixed_are_told_by_their_numbers() -> None:
    mixed = files_of(receipts()) | files_of(receipts(home="b"), with_head=False)
    found = verified(mixed)
    assert flaws(found) == {Flaw.TWICE}
    assert [finding.sequences for finding in found.findings] == [(number,) for number in range(1, LENGTH + 1)]


@pytest.mark.parametrize("border", [1, 7, LENGTH - 1])
def test_the_beginning_of_one_chain_with_the_end_of_another_is_told_at_the_border(border: int) -> None:
    of_other = receipts(home="b")
    found = verified(files_of([*receipts()[:border], *of_other[border:]]))
    assert flaws(found) == {Flaw.NOT_LINKED}
    assert found.findings[0].sequences == (border + 1,)


def test_a_chain_that_begins_later_is_no_chain_of_its_own() -> None:
    chain = receipts()
    first = sealed(draft(1), 1, chain[4].sha256, KEY, VERSION)
    assert flaws(verified(files_of([first]))) == {Flaw.NOT_LINKED}
    second = sealed(draft(2), 2, None, KEY, VERSION)
    assert flaws(verified(files_of([chain[0], second]))) == {Flaw.NOT_LINKED}


def test_files_may_be_renamed_given_twice_and_come_in_any_order() -> None:
    files = files_of(receipts())
    renamed = {f"{number}.txt": content for number, content in enumerate(reversed(files.values()))}
    assert verified(renamed).is_sound
    assert verified(renamed | files).is_sound


def test_a_part_of_a_chain_is_asked_for_nothing_that_is_missing() -> None:
    chain = receipts()
    assert verified(files_of([chain[6]], with_head=False), is_part=True).is_sound
    assert verified(files_of([chain[6], chain[9], chain[10]]), is_part=True).is_sound
    changed = chain[6].to_bytes().replace(b"users", b"usurs")
    assert flaws(verified({"7.json": changed}, is_part=True)) == {Flaw.DAMAGED}
    assert flaws(verified(files_of([chain[6], receipts(home="b")[7]]), is_part=True)) == {Flaw.NOT_LINKED}


def test_two_signers_of_one_chain_are_sound_where_both_are_known() -> None:
    chain = receipts(3)
    chain.append(sealed(draft(4), 4, chain[-1].sha256, OTHER_KEY, VERSION))
    files = files_of(chain, OTHER_KEY)
    found = verified(files, KEY, OTHER_KEY)
    assert found.is_sound
    assert set(found.key_ids) == {KEY.public.key_id, OTHER_KEY.public.key_id}
    found = verified(files, KEY)
    assert f"receipt 4 and the head are signed with key {OTHER_KEY.public.key_id}" in texts(found)


def test_files_that_are_no_receipts_are_named() -> None:
    found = verified(files_of(receipts(2)) | {"notes.json": b'{"hello": 1}', "picture.json": b"\xff\xd8"})
    assert flaws(found) == {Flaw.DAMAGED}
    assert "notes.json" in texts(found)
    assert "picture.json" in texts(found)


def test_no_files_are_no_proof() -> None:
    assert flaws(verified({})) == {Flaw.NO_END}
