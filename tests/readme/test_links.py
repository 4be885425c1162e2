"""What README, ARCHITECTURE, CONTEXT and the docs link to is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_style import ROOT, tracked

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
PAGES = tracked("*.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_is_dead(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_a_module_that_architecture_names_is_there() -> None:
    """Modules stand there as `folder/module.py`, of `keptlog` or of the repository."""
    named = set(re.findall(r"`((?:\w+/)+\w+\.py)`", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")))
    assert named
    assert {name for name in named if not any((folder / name).exists() for folder in (ROOT, ROOT / "keptlog"))} == set()
