"""One word, one meaning: in CONTEXT.md, and in the names of what the code is made of."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

from tests.test_style import OURS, ROOT

LIBRARY = [path for path in OURS if path.relative_to(ROOT).parts[0] not in {"benchmarks", "examples", "scripts"}]
CONTEXT = (ROOT / "CONTEXT.md").read_text(encoding="utf-8")
RUN_IS_FOR = {"Task", "Jobs"}
"""``run`` is what is done with a task, by those who keep these protocols; all else has a verb of its own."""


def classes(path: Path) -> list[ast.ClassDef]:
    return [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.ClassDef)]


def test_context_defines_every_word_once() -> None:
    rows = [line.split("|")[1] for line in CONTEXT.splitlines() if line.startswith("| ") and "| word |" not in line]
    words = [word.strip() for row in rows for word in re.split(r",\s+", row.strip()) if word.strip()]
    assert [word for word in set(words) if words.count(word) > 1] == []


def test_no_two_classes_have_one_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in LIBRARY:
        for each in classes(path):
            if not each.name.startswith("_"):
                places[each.name].append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_only_tasks_and_those_who_do_them_have_a_method_named_run() -> None:
    named_run = {
        each.name
        for path in LIBRARY
        for each in classes(path)
        if any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in each.body)
    }
    tasks = {name for name in named_run if name.endswith(("Task", "_Bundle", "Jobs"))}
    assert tasks >= RUN_IS_FOR
    assert named_run - tasks == set()


def test_a_class_is_not_named_by_a_participle_alone() -> None:
    participles = {"Looked", "Found", "Enough", "Mapped", "Arrived", "Nothing", "Unmapped", "Judged", "Ingested"}
    assert {each.name.lstrip("_") for path in LIBRARY for each in classes(path)} & participles == set()
