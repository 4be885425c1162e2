"""What is said to people: numbers with their nouns, in sentences that are not too long."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_style import OURS, ROOT, tracked

NOUNS = (
    "record|log|segment|file|topic|topic-partition|partition|clean|tombstone|key|snapshot|offset|horizon|element|"
    "attempt|task|part|run|row|line|broker|orphan|manifest|version"
)
PLURAL = re.compile(rf" (?!(?:has|holds|lacks|of|in) )(\w+ )?({NOUNS})s\b")
MOST_WORDS = 40
CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
PARAGRAPH_ENDS = re.compile(r"\n\s*\n|\n(?=[-*] |\||#|\d+\. )")
SENTENCE_ENDS = re.compile(r"(?<=[.!?:;])(?:\*\*)?\s+(?=[^a-z])| · ")
PAGES = [page for page in tracked("README.md", "docs/*.md") if page.parent.name != "adr"]
OF_LOG_LINE = re.compile(rf"%d (\w+ )?({NOUNS})s\b")


def uncounted(path: Path) -> Iterator[str]:
    """Where a number stands before a plural whatever it is: ``1 cleans failed``."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            for number, noun in zip(node.values, node.values[1:], strict=False):
                if not (isinstance(number, ast.FormattedValue) and isinstance(noun, ast.Constant)):
                    continue
                is_known = isinstance(number.value, ast.Name) and number.value.id.isupper()
                if PLURAL.match(str(noun.value)) and not is_known:
                    yield f"{path.relative_to(ROOT)}:{number.lineno}: {ast.unparse(number)}{noun.value!s}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and OF_LOG_LINE.search(node.value):
            yield f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}"


def test_one_is_not_told_as_many() -> None:
    library = [path for path in OURS if path.relative_to(ROOT).parts[0] not in {"benchmarks", "examples", "scripts"}]
    assert [place for path in library for place in uncounted(path)] == []


@pytest.mark.parametrize("said", ['f"{n} cleans failed"', 'f"of {len(x)} dirty records"', '"%d files deleted"'])
def test_such_texts_are_found(said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.test_texts.ROOT", tmp_path)
    (tmp_path / "module.py").write_text(said)
    assert len(list(uncounted(tmp_path / "module.py"))) == 1


def long_sentences(page: str) -> Iterator[str]:
    """Sentences of Markdown that nobody can hold in mind; each cell of a table stands for itself."""
    for paragraph in PARAGRAPH_ENDS.split(CODE_BLOCK.sub("", page)):
        for text in paragraph.split("|") if paragraph.startswith("|") else [paragraph]:
            yield from (each for each in SENTENCE_ENDS.split(" ".join(text.split())) if len(each.split()) > MOST_WORDS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_sentence_of_the_docs_can_be_read_at_once(page: Path) -> None:
    assert list(long_sentences(page.read_text(encoding="utf-8"))) == []


def test_a_long_sentence_is_found_wherever_it_stands() -> None:
    long = "word " * (MOST_WORDS + 1)
    assert len(list(long_sentences(f"Short.\n\n- {long}\n- One. {long.title()}\n\n| a | {long}|\n"))) == 3
