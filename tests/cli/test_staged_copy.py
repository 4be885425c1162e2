"""A copy of a topic's metadata that Spark's ``rewrite_table_path`` made ready is told as that, and how it goes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.table.foreign import table_of


@pytest.fixture
def copied(keptlog: Run, lines: Callable[..., str], home: Path) -> Path:
    """Of a topic; its files look like commits that the catalog does not have."""
    assert keptlog("topic", "create", "users", "--config", "cleanup.policy=compact").code == 0
    assert keptlog("append", "users", "--file", lines({"key": "a", "value": "1"})).code == 0
    metadata = Path(table_of(home, "users").location().removeprefix("file://")) / "metadata"
    folder = metadata / "copy-table-staging-dd1b5608-ea3f-4a0a-8841-ba1124100f40"
    (folder / "metadata").mkdir(parents=True)
    for number, path in enumerate(sorted(metadata.glob("*.metadata.json"))):
        shutil.copy(path, folder / "metadata" / f"{number + 3:05}-of-the-copy.metadata.json")
    (folder / "file-list").write_text("from,to\n")
    return folder


def test_it_is_no_other_table_and_no_other_home(keptlog: Run, copied: Path) -> None:
    said = f"holds a copy of its metadata, which Spark's rewrite_table_path has made (file://{copied}), and "
    purge, doctor = keptlog("purge", "users", "--yes"), keptlog("doctor", "--no-probes")
    for done in (purge, doctor):
        told = done.out + done.err
        assert (done.code, said in told) == (1, True)
        assert "then delete that folder" in told
        assert "set the location of its table back" not in told
        assert "the storage knows more than this catalog" not in told


def test_once_it_is_deleted_nothing_is_wrong(keptlog: Run, copied: Path) -> None:
    shutil.rmtree(copied)
    assert keptlog("purge", "users", "--yes").code == keptlog("doctor", "--no-probes").code == 0
