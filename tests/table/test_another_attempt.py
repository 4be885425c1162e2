"""A commit that is sent again leaves a metadata file beside the catalog's: an orphan, and no other home's copy."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from pyiceberg.serializers import ToOutputFile

from keptlog.table.commits.taken_back import taken_back_if_gone
from keptlog.table.io.files import TableFiles
from tests.table.purges import DAY_MS, clock_ms
from tests.table.stores import COMPACTED, TOPIC, append_each, store_at


@pytest.fixture(params=["", ".gz"])
def attempt(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The answer of the last commit was lost, and it was sent again, with the same snapshot."""
    store = store_at(tmp_path)
    store.create_topic(TOPIC, 1, COMPACTED)
    append_each(store, [("a", "1")], [("a", "2")])
    table = store.load_table(TOPIC)
    folder, _, name = table.metadata_location.rpartition("/")
    path = f"{folder}/{name[:5]}-{uuid.uuid4()}{request.param}.metadata.json"
    # Through what the catalog writes with: a file bears a checksum of its name.
    ToOutputFile.table_metadata(table.metadata, table.io.new_output(path))
    return Path(path.removeprefix("file://"))


def test_a_purge_sweeps_it(tmp_path: Path, attempt: Path) -> None:
    store_at(tmp_path).purge(TOPIC, clock_ms() + 3 * DAY_MS)
    assert not attempt.exists()


def test_the_topic_can_be_deleted(tmp_path: Path, attempt: Path) -> None:
    store_at(tmp_path).delete_topic(TOPIC, clock_ms())
    assert not attempt.exists()


def test_what_notes_small_files_writes_as_the_files_do_that_it_was_given(tmp_path: Path) -> None:
    class Counted(TableFiles):
        def write_bytes(self, path: str, content: bytes) -> None:
            super().write_bytes(path, content + b" counted")

    store = store_at(tmp_path)
    store.create_topic(TOPIC, 1, COMPACTED)
    files = Counted(store.files.properties)
    with taken_back_if_gone(store.committer.catalog, files, store.load_table(TOPIC)) as noting:
        noting.write_bytes(str(tmp_path / "small"), b"written")
    assert (tmp_path / "small").read_bytes() == b"written counted"
    assert isinstance(noting, Counted)
