"""A receipt has one form, byte for byte, and nothing else is one."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.errors import InvalidConfig
from keptlog.receipts.chain import sealed, signed_head
from keptlog.receipts.coverage import NOT_COVERED
from keptlog.receipts.receipt import Draft, Head, Receipt
from tests.receipts.chains import KEY, VERSION, draft, receipts

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.dictionaries(st.text(), PLAIN, max_size=4))
def test_whatever_a_draft_says_comes_back_from_the_file(content: dict[str, Any]) -> None:
    receipt = sealed(Draft("a", "purge", 5, content), 1, None, KEY, VERSION)
    assert Receipt.of(receipt.to_bytes()) == receipt
    assert {name: receipt.content[name] for name in content} == content


def test_a_receipt_is_text_that_people_can_read() -> None:
    text = receipts(2)[1].to_bytes().decode("ascii")
    assert text.startswith('{\n "at_ms": 1700000000002,\n "content": {\n  "deleted_files": [\n   2\n  ],')
    assert json.loads(text)["previous_sha256"] == receipts(1)[0].sha256


def test_every_receipt_says_what_it_does_not_cover() -> None:
    assert receipts(1)[0].content["not_covered"] == list(NOT_COVERED)


@pytest.mark.parametrize("content", [{"share": 0.5}, {"when": object()}, {"of": {1: "x"}}, {"many": [[{2.5}]]}])
def test_what_json_has_no_one_form_for_is_refused_as_a_draft(content: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="receipt a: content"):
        Draft("a", "purge", 0, content)


def test_what_is_nested_so_deeply_that_not_everybody_could_read_it_is_refused_as_a_draft() -> None:
    """It was sealed for good, and `receipt show` ended in a RecursionError."""
    content: dict[str, Any] = {}
    for _ in range(900):
        content = {"a": content}
    with pytest.raises(ValueError, match="is nested too deeply"):
        Draft("a", "purge", 0, content)


def test_a_file_that_is_nested_more_deeply_than_python_writes_is_no_receipt() -> None:
    """Python reads it from 3.12 on, and `receipt verify` would end in a RecursionError."""
    content: dict[str, Any] = {}
    for _ in range(5_000):
        content = {"a": content}
    with pytest.raises(ValueError, match="it is not written as keptlog writes a receipt"):
        replace(receipts(1)[0], content=content).require_written_as(b"")


@pytest.mark.parametrize("receipt_id", ["", "a/b", "a~b", "x" * 101, "a b"])
def test_an_id_that_can_be_no_file_name_is_refused(receipt_id: str) -> None:
    with pytest.raises(InvalidConfig):
        Draft(receipt_id, "purge", 0, {})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda text: text.replace("\n ", "\n  ", 1), "not written as keptlog writes"),
        (lambda text: text + "\n", "not written as keptlog writes"),
        (lambda text: text.replace('"at_ms": 1700000000001', '"at_ms": 1700000000001.0'), "not a whole number"),
        (lambda text: text.replace('"at_ms": 1700000000001', '"at_ms": NaN'), "not a whole number"),
        (lambda text: text.replace('"at_ms": 1700000000001', '"at_ms": "1"'), "its at_ms is '1'"),
        (lambda text: text.replace('"sequence": 1', '"sequence": 0'), "its sequence is '0'"),
        (lambda text: text.replace('"sequence": 1', '"sequence": true'), "its sequence is 'True'"),
        (lambda text: text.replace('"kind": "purge",\n', ""), "its fields are not those"),
        (lambda text: text.replace('"kind"', '"colour": 1,\n "kind"'), "its fields are not those"),
        (lambda text: text.replace('"kind": "purge"', '"kind": "purge",\n "kind": "purge"'), "not written as"),
        (lambda text: text.replace("receipt 1", "receipt 2"), "this keptlog reads 'keptlog receipt 1'"),
        (lambda text: text[: len(text) // 2], "it is not JSON"),
        (lambda _: "[" * 100_000, "it is not JSON"),
        (lambda _: '{"at_ms": ' + "1" * 5000 + "}", "it is not JSON"),
        (lambda _: "[]", "it is no receipt"),
        (lambda _: "{}", "it is no receipt"),
        (lambda _: "", "it is not JSON"),
    ],
)
def test_what_is_written_in_any_other_way_is_no_receipt(change: Any, why: str) -> None:
    text = receipts(1)[0].to_bytes().decode()
    with pytest.raises(ValueError, match=why):
        Receipt.of(change(text).encode())


def test_a_head_is_no_receipt_and_a_receipt_no_head() -> None:
    receipt = receipts(1)[0]
    with pytest.raises(ValueError, match="keptlog receipt head 1"):
        Receipt.of(signed_head(receipt, KEY).to_bytes())
    with pytest.raises(ValueError, match="keptlog receipt 1"):
        Head.of(receipt.to_bytes())


def test_a_draft_is_sealed_as_it_stands() -> None:
    receipt = sealed(draft(7), 7, "0" * 64, KEY, VERSION)
    assert (receipt.sequence, receipt.id, receipt.kind, receipt.at_ms) == (7, "a-7", "purge", 1_700_000_000_007)
    assert (receipt.previous_sha256, receipt.key_id) == ("0" * 64, KEY.public.key_id)
