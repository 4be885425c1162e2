"""What a file has declared of topics is there for every later version, and is no difference to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.frozen_homes import telling
from tests.frozen_homes.conftest import ARCHIVES, Frozen, name_of


def is_declared(archive: Path) -> bool:
    return "declared" in json.loads(archive.with_name(archive.name.replace(".tar.xz", ".json")).read_text())


DECLARED = [archive for archive in ARCHIVES if is_declared(archive)]


@pytest.mark.parametrize("frozen", DECLARED, ids=name_of, indirect=True)
def test_what_was_declared_is_found_and_needs_no_change(frozen: Frozen, tmp_path: Path) -> None:
    declared = telling.declared(frozen.home)
    assert declared == frozen.expected["declared"]
    (tmp_path / "topics.yaml").write_text(json.dumps(declared))
    applied = frozen.at(frozen.later_ms, "topic", "apply", str(tmp_path / "topics.yaml"), "--dry-run", "--exit-code")
    assert (applied.code, applied.err) == (0, "")


@pytest.mark.parametrize("frozen", DECLARED, ids=name_of, indirect=True)
def test_a_topic_can_be_brought_elsewhere_from_there(frozen: Frozen, tmp_path: Path) -> None:
    declared = telling.declared(frozen.home)
    declared["topics"]["users"] |= {"partitions": 5, "owners": "team:other"}
    (tmp_path / "topics.yaml").write_text(json.dumps(declared))
    assert frozen.at(frozen.later_ms, "topic", "apply", str(tmp_path / "topics.yaml")).code == 0
    assert telling.declared(frozen.home)["topics"]["users"]["owners"] == ["team:other"]
    assert len(telling.stored(frozen.home)["users"]["logs"]) == 5
