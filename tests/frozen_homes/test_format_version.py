"""Homes of an older format are opened as what they are, and a commit that makes a snapshot brings its topic along."""

from __future__ import annotations

import json
import re
from pathlib import Path

from keptlog.table.metadata.format import CURRENT, FormatVersion
from tests.frozen_homes import telling
from tests.frozen_homes.conftest import Frozen

FOLDERS = {
    "format_1_0": (FormatVersion(1, 0), None),
    "format_1_1": (FormatVersion(1, 1), "1.1"),
    "format_1_2": (FormatVersion(1, 2), "1.2"),
    "format_1_3": (FormatVersion(1, 3), "1.3"),
    "format_1_4": (FormatVersion(1, 4), "1.4"),
}
"""Folder of frozen homes to their format, and how their tables tell it."""


def test_a_home_is_of_the_format_of_its_folder(frozen: Frozen) -> None:
    version = FOLDERS[frozen.archive.parent.name]
    assert telling.formats(frozen.home) == [version] * len(frozen.topics)
    assert version[0] <= CURRENT


def test_a_topic_is_brought_along_with_its_next_snapshot_and_no_sooner(frozen: Frozen, tmp_path: Path) -> None:
    before, snapshots = telling.formats(frozen.home), telling.snapshots(frozen.home)
    for topic in frozen.topics:
        assert frozen.at(frozen.later_ms, "topic", "describe", topic).code == 0
        status = frozen.at(frozen.later_ms, "status", topic)
        # A home that nobody has purged for weeks is told so, and status says it by its exit code too.
        is_told = re.search(r"past (its|their) deadline|deletion was begun|it is damaged", status.err)
        assert status.code == int(bool(is_told)), status
    assert telling.formats(frozen.home) == before
    lines = tmp_path / "records.jsonl"
    lines.write_text(json.dumps({"key": "a", "value": "more"}) + "\n")
    for topic, stored in frozen.topics.items():
        if not stored["source"]:
            assert frozen.at(frozen.later_ms, "append", topic, "--file", str(lines)).code == 0
        assert frozen.at(frozen.later_ms, "delete-records", topic, "0", "--", "-1").code == 0
    for command in ("retain", "purge"):
        frozen.at(frozen.later_ms, command)

    after = telling.formats(frozen.home)
    is_new = [now != then for now, then in zip(telling.snapshots(frozen.home), snapshots, strict=True)]
    assert after == [(CURRENT, str(CURRENT)) if new else was for new, was in zip(is_new, before, strict=True)]
    assert any(is_new)
