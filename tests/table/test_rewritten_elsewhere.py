"""A small file that another store than S3 does not take costs nothing that lies under its name."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from keptlog.errors import StorageUnavailable
from keptlog.receipts.receipt import Draft
from keptlog.table.io import remote_files
from keptlog.table.io.files import TableFiles
from keptlog.table.reading.readers import PositionFiles, ReaderPosition, Registration
from keptlog.table.removal.drafts import read_draft, write_draft

TOPIC = "gs://lake/keptlog/users"


class _Gone(io.BytesIO):
    """A file of a store that answers its end with an error, ``what`` it may have done before."""

    def __init__(self, what: Callable[[bytes], None]) -> None:
        super().__init__()
        self.what = what

    def close(self) -> None:
        if not self.closed:
            content = self.getvalue()
            super().close()
            self.what(content)


@dataclass
class _Store:
    """As Arrow opens one; ``stored_bytes`` is how much it takes of a file before it fails, null for it does not."""

    objects: dict[str, bytes] = field(default_factory=dict)
    stored_bytes: int | None = None
    is_silent: bool = False
    """Whether it does not store anything then, and leaves what is there."""

    def open_output_stream(self, path: str) -> pa.NativeFile:
        def take(content: bytes) -> None:
            if not self.is_silent:
                self.objects[path] = content[: self.stored_bytes]
            if self.is_silent or self.stored_bytes is not None:
                raise OSError("google::cloud::Status(UNAVAILABLE)")

        return pa.PythonFile(_Gone(take), "w")

    def open_input_file(self, path: str) -> pa.NativeFile:
        if path not in self.objects:
            raise FileNotFoundError(path)
        return pa.BufferReader(self.objects[path])

    def delete_file(self, path: str) -> None:
        del self.objects[path]


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> _Store:
    made = _Store()
    monkeypatch.setattr(remote_files, "_filesystem_of", lambda _, path: (made, path))
    return made


def test_a_draft_that_is_written_again_stays_where_the_store_does_not_answer(elsewhere: _Store) -> None:
    """It is all that is known of files that are deleted already."""
    files = TableFiles()
    write_draft(files, TOPIC, Draft("an-id", "purge", 1, {"files": ["a"]}))
    [path] = elsewhere.objects
    elsewhere.is_silent = True
    with pytest.raises(OSError, match="UNAVAILABLE"):
        write_draft(files, TOPIC, Draft("an-id", "purge", 2, {"files": ["a", "b"]}))
    assert read_draft(files, path).at_ms == 1


def test_what_was_stored_whole_stays_though_its_answer_was_lost(elsewhere: _Store) -> None:
    elsewhere.stored_bytes = 1000
    with pytest.raises(OSError, match="UNAVAILABLE"):
        TableFiles().write_bytes(f"{TOPIC}/x", b"content")
    assert elsewhere.objects == {f"{TOPIC}/x": b"content"}


@pytest.mark.parametrize("stored_bytes", [0, 3])
def test_of_half_a_file_nothing_stays(elsewhere: _Store, stored_bytes: int) -> None:
    elsewhere.stored_bytes = stored_bytes
    with pytest.raises(OSError, match="UNAVAILABLE"):
        TableFiles().write_bytes(f"{TOPIC}/x", b"content")
    assert elsewhere.objects == {}


def test_a_position_that_is_stored_again_is_not_lost_in_an_outage(elsewhere: _Store) -> None:
    elsewhere.objects[f"{TOPIC}/metadata/receipts/readers/search/an-id/0-5.json"] = b'{"truncations":1}'
    before, elsewhere.is_silent = dict(elsewhere.objects), True
    with pytest.raises(StorageUnavailable, match="position of reader search can't be stored"):
        PositionFiles(TableFiles(), TOPIC).write("search", Registration("an-id", 1, 0), 0, ReaderPosition(5, 0))
    assert elsewhere.objects == before
