"""A topic is not forgotten while its bucket does not list versions: nobody would look into its folder any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.table.removal import deletion
from keptlog.table.removal.hidden import HiddenFiles
from tests.table.stores import NOW_MS, TOPIC, create, new_id, new_records


def test_a_deletion_is_not_over_before_all_versions_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = create(tmp_path)
    store.append(TOPIC, new_records(("a", "1")), new_id(), NOW_MS)
    monkeypatch.setattr(deletion, "hidden_below", lambda *_: HiddenFiles(unread=("versions can't be listed",)))
    for _ in range(2):
        with pytest.raises(StorageUnavailable, match="can't be forgotten: versions can't be listed; delete it again"):
            store.delete_topic(TOPIC, NOW_MS)
    monkeypatch.undo()
    store.delete_topic(TOPIC, NOW_MS)
    assert store.topics() == []
