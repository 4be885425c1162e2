"""Homes of an older format are opened as what they are, and whoever writes to them leaves them that."""

from __future__ import annotations

import json
from pathlib import Path

from keptlog.table.format import CURRENT, FormatVersion
from tests.frozen_homes import telling
from tests.frozen_homes.conftest import Frozen

FOLDERS = {"format_1_0": (FormatVersion(1, 0), None)}
"""Folder of frozen homes to their format, and how their tables tell it."""


def test_a_home_is_of_the_format_of_its_folder(frozen: Frozen) -> None:
    version = FOLDERS[frozen.archive.parent.name]
    assert telling.formats(frozen.home) == [version] * len(frozen.topics)
    assert version[0] <= CURRENT


def test_no_write_changes_the_format(frozen: Frozen, tmp_path: Path) -> None:
    before = telling.formats(frozen.home)
    lines = tmp_path / "records.jsonl"
    lines.write_text(json.dumps({"key": "a", "value": "more"}) + "\n")
    for topic, stored in frozen.topics.items():
        if not stored["source"]:
            assert frozen.at(frozen.later_ms, "append", topic, "--file", str(lines)).code == 0
        assert frozen.at(frozen.later_ms, "topic", "alter", topic, "--config", "segment.ms=7").code == 0
        assert frozen.at(frozen.later_ms, "delete-records", topic, "0", "--", "-1").code == 0
    for command in ("retain", "purge"):
        frozen.at(frozen.later_ms, command)

    assert telling.formats(frozen.home) == before
