"""Every frozen home, unpacked for the test that asks for it, with what was expected of it when it was written."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.frozen_homes.archive import unpack
from tests.frozen_homes.command import Outcome, keptlog

ARCHIVES = sorted(Path(__file__).parent.glob("format_*/*.tar.xz"))


@dataclass(frozen=True)
class Frozen:
    """One home and its expectation, as ``write.py`` made it."""

    archive: Path
    home: Path
    expected: dict[str, Any]

    @property
    def now_ms(self) -> int:
        """When it was written."""
        return int(self.expected["now_ms"])

    @property
    def later_ms(self) -> int:
        """When it is cleaned, retained and purged."""
        return int(self.expected["later_ms"])

    @property
    def topics(self) -> dict[str, Any]:
        """Topic to what was stored of it."""
        return dict(self.expected["stored"])

    def at(self, now_ms: int, *arguments: str) -> Outcome:
        """A command at a time."""
        return keptlog(self.home, now_ms, *arguments)

    @property
    def segments_on_disk(self) -> set[str]:
        return {str(path) for path in (self.home / "warehouse").rglob("*.parquet")}


def name_of(archive: Path) -> str:
    return f"{archive.parent.name}-{archive.name.removesuffix('.tar.xz')}"


@pytest.fixture(params=ARCHIVES, ids=name_of)
def frozen(request: pytest.FixtureRequest, tmp_path: Path) -> Frozen:
    archive: Path = request.param
    expected = json.loads(archive.with_name(archive.name.replace(".tar.xz", ".json")).read_text())
    return Frozen(archive, unpack(archive, tmp_path), expected)
