"""Dagster's folders have one name, below ``keptlog.dagster``, though the repository's root offers another (ADR 25).

A module that is imported under both names is there twice: two registries, two classes of one name that are not equal.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.test_style import MODULES, ROOT

FOLDERS = ("orchestration", "assets", "resources")
SHORT_NAME = re.compile(rf"({'|'.join(FOLDERS)})(\.[a-zA-Z_]\w*)*")


def modules_named(code: str) -> Iterator[str]:
    """What code imports, or could import by a dotted name in a text; relative imports are none."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            yield node.value


def by_short_name(code: str) -> list[str]:
    return [name for name in modules_named(code) if SHORT_NAME.fullmatch(name)]


def test_the_links_lead_to_the_folders_at_the_root() -> None:
    for name in FOLDERS:
        link = ROOT / "keptlog" / "dagster" / name
        assert link.is_symlink()
        assert link.readlink() == Path("..", "..", name)
        assert link.resolve() == ROOT / name


def test_nothing_imports_them_by_their_short_names() -> None:
    here = Path(__file__).parent  # where packages of the same names that are somebody else's are written of
    others = [path for path in MODULES if path.parent != here]
    assert len(others) > len(FOLDERS)
    found = {path: by_short_name(path.read_text(encoding="utf-8")) for path in others}
    assert {path: names for path, names in found.items() if names} == {}


def test_a_short_name_would_be_seen() -> None:
    for line in ("import assets", "import resources.clock as clock", "from orchestration import jobs"):
        assert by_short_name(line)
    assert by_short_name("patch('assets.checks')") == ["assets.checks"]
    assert not by_short_name("from . import assets; import keptlog.dagster.assets; 'assets'")


def test_the_definitions_load_no_module_twice() -> None:
    code = (
        "import sys; sys.path.insert(0, ''); import keptlog.dagster.orchestration.definitions\n"
        f"print([name in sys.modules for short in {FOLDERS} for name in ('keptlog.dagster.' + short, short)])"
    )
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == str([True, False] * len(FOLDERS))
