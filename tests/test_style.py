"""What the linters can't say: proportions, leftovers, and things that belong to one machine only."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LONGEST_MODULE_LINES = 400
LONGEST_FUNCTION_LINES = 60
MOST_PARAMETERS = 5
LEFTOVERS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
ONE_MACHINE_ONLY = re.compile(r"(?<![\w.])/(home|root|Users|work|opt)/\w|/tmp/\w")
PACKAGE_HOSTS = re.compile(r"pypi\.org|pythonhosted\.org|--index-url|--find-links|--trusted-host")


def tracked(*patterns: str) -> list[Path]:
    """Files of the repository that match, also those not committed yet; ignored ones are not ours."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def text_files() -> Iterator[tuple[Path, str]]:
    for path in tracked():
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def places(pattern: re.Pattern[str]) -> list[str]:
    """Where a pattern occurs, but for this file, which must name what it forbids."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path, text in text_files()
        if path != Path(__file__)
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


MODULES = tracked("*.py")
OURS = [path for path in MODULES if path.relative_to(ROOT).parts[0] != "tests"]


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_no_module_is_too_long_to_be_read_at_once() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert not [f"{path.relative_to(ROOT)}: {lines}" for path, lines in lengths.items() if lines > LONGEST_MODULE_LINES]


def test_no_function_is_too_long_to_be_seen_at_once() -> None:
    too_long = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}"
        for path in MODULES
        for function in functions(path)
        if function.end_lineno and function.end_lineno - function.lineno + 1 > LONGEST_FUNCTION_LINES
    ]
    assert not too_long


def test_no_function_takes_more_than_one_can_remember() -> None:
    """Commands of click are called with their options by click."""
    too_many = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}"
        for path in OURS
        for function in functions(path)
        if len(_parameters(function)) > MOST_PARAMETERS and not _is_command(function)
    ]
    assert not too_many


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    arguments = function.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return [name for name in names if name not in {"self", "cls"}]


def _is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("command" in ast.unparse(decorator) for decorator in function.decorator_list)


def test_every_module_says_what_it_is_for() -> None:
    # One tree at a time: Python's collector goes through all that are kept, again and again.
    trees = ((path, ast.parse(path.read_text(encoding="utf-8"))) for path in OURS)
    assert not [str(path.relative_to(ROOT)) for path, tree in trees if tree.body and not ast.get_docstring(tree)]


LARGE_PACKAGES = [
    path
    for path in OURS
    if path.name == "__init__.py"
    and path.relative_to(ROOT).parts[0] in {"keptlog", "orchestration", "assets"}
    and (len(list(path.parent.glob("*.py"))) > 11 or ROOT / "keptlog" / "table" in (path.parent, path.parents[1]))
    and path.parent not in {ROOT / "keptlog", ROOT / "keptlog" / "cli"}
]
"""Whose folder is too long to be read as a list, and the table's. The command's are called like what people type."""


@pytest.mark.parametrize("head", LARGE_PACKAGES, ids=lambda path: str(path.parent.relative_to(ROOT)))
def test_the_head_of_a_large_package_names_each_of_its_modules_and_no_other(head: Path) -> None:
    text = ast.get_docstring(ast.parse(head.read_text(encoding="utf-8"))) or ""
    named = re.findall(r"``([a-z0-9_]+)``|^ *([a-z0-9_]+)\.py {2,}", text, re.MULTILINE)
    there = {path.stem for path in head.parent.glob("*.py") if path != head}
    assert {one or other for one, other in named} == there


def test_no_folder_that_can_not_be_listed_is_left_out_without_a_word() -> None:
    """Python's walks and globs do that; ``keptlog.folders`` raises. These few tell nobody that something is whole."""
    allowed = {
        "keptlog/folders.py",
        "keptlog/cli/completion.py",
        "keptlog/passes/doctor/this_machine.py",
        "keptlog/spark/archive.py",
        "keptlog/spark/archiving.py",
        "keptlog/table/doctor/scratch.py",
    }
    names = {
        str(path.relative_to(ROOT))
        for path in OURS
        if path.relative_to(ROOT).parts[0] in {"keptlog", "orchestration", "assets", "resources"}
        and re.search(r"\.r?glob\(|os\.walk\(", path.read_text(encoding="utf-8"))
    }
    assert names == allowed


def test_nothing_was_left_to_be_done_later() -> None:
    assert not places(LEFTOVERS)


def test_nothing_names_a_path_of_one_machine() -> None:
    assert not places(ONE_MACHINE_ONLY)


def test_nothing_names_a_host_that_packages_come_from() -> None:
    """Where packages come from is the business of whoever installs them."""
    assert not places(PACKAGE_HOSTS)
