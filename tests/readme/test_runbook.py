"""What docs/not-compacted.md says that ``explain`` says, the code says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.readme.page import ROOT
from tests.test_style import tracked

PAGE = (ROOT / "docs" / "not-compacted.md").read_text(encoding="utf-8")
QUOTED = re.compile(r"^\| `([^`]+)`", re.MULTILINE)


def texts() -> Iterator[str]:
    """Every text of the rules, with … for each value in it."""
    for path in tracked("keptlog/log/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_every_reason_that_the_runbook_quotes_is_one_that_is_told() -> None:
    quoted = [*QUOTED.findall(PAGE), "the earliest delete horizon"]
    assert len(quoted) > 5
    told = list(texts())
    assert [each for each in quoted if not any(each in text for text in told)] == []
