"""The code of ``docs/library.md``, run in its order, prints what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import keptlog

PAGE = Path(__file__).parents[2] / "docs" / "library.md"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NEEDS_NO_EXAMPLE = {"__version__", "Home", "Record"}
"""What the page gets from calls, and need not name."""


def examples() -> Iterator[tuple[str, str]]:
    """Each block of Python, and the text that stands behind it.

    Raises:
        ValueError: the blocks do not come in such pairs, so that one would not be run or compared.
    """
    blocks = _FENCE.findall(PAGE.read_text(encoding="utf-8"))
    if [language for language, _ in blocks] != ["python", "text"] * (len(blocks) // 2):
        raise ValueError(f"{PAGE.name}: a block of python must be followed by one of text, with what it prints")
    for (_, code), (_, printed) in zip(blocks[::2], blocks[1::2], strict=True):
        yield code, printed


def test_every_block_prints_what_the_page_shows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del spark  # the clean finds this session instead of starting one that other tests would find
    monkeypatch.chdir(tmp_path)
    defined: dict[str, Any] = {}
    shown: list[str] = []
    run: list[str] = []
    for code, printed in examples():
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(code, PAGE.name, "exec"), defined)  # noqa: S102  # our own page
        run.append(out.getvalue())
        shown.append(printed)
    assert run == shown
    assert not (tmp_path / ".keptlog").exists()


def test_the_page_names_all_that_is_exported() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in keptlog.__all__ if name not in _NEEDS_NO_EXAMPLE and name not in text] == []
