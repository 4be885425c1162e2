"""A bit that flips in a table's own files is found by whoever reads them, or changes nothing that anybody reads."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestEntry, ManifestFile
from pyiceberg.serializers import FromInputFile

from keptlog.errors import LogCorrupt
from keptlog.table.store import LogStore
from tests.table.stores import TOPIC, append_each, clean, create

FLIPS = 300


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    store = create(tmp_path)
    append_each(store, [("a", "1"), ("b", "1")], [("a", "2")], [("c", None)])
    clean(store)
    return store


def read_metadata(store: LogStore) -> Any:
    return store.load_table(TOPIC).metadata


def read_manifests(store: LogStore) -> Any:
    table = store.load_table(TOPIC)
    return _told(table.current_snapshot().manifests(table.io), table.io)  # type: ignore[union-attr]


def _told(manifests: list[ManifestFile], io: FileIO) -> list[tuple[str, list[Any]]]:
    """All that manifests say."""
    return [(repr(each), [_entry(entry) for entry in each.fetch_manifest_entry(io, False)]) for each in manifests]


def _entry(entry: ManifestEntry) -> Any:
    data_file = entry.data_file
    numbers = (data_file.value_counts, data_file.null_value_counts, data_file.lower_bounds, data_file.upper_bounds)
    named = (data_file.file_path, data_file.file_format, data_file.content, repr(data_file.partition))
    counted = (data_file.record_count, data_file.file_size_in_bytes, data_file.sort_order_id)
    seen = (entry.status, entry.snapshot_id, entry.sequence_number, entry.file_sequence_number)
    return (*seen, *named, *counted, *(dict(each.items()) for each in numbers))


def metadata_file(store: LogStore) -> str:
    return store.load_table(TOPIC).metadata_location


def manifest_list(store: LogStore) -> str:
    snapshot = store.load_table(TOPIC).current_snapshot()
    assert snapshot
    return snapshot.manifest_list


def manifest(store: LogStore) -> str:
    table = store.load_table(TOPIC)
    return str(table.current_snapshot().manifests(table.io)[0].manifest_path)  # type: ignore[union-attr]


FILES = [
    pytest.param(metadata_file, read_metadata, id="metadata file"),
    pytest.param(manifest_list, read_manifests, id="manifest list"),
    pytest.param(manifest, read_manifests, id="manifest"),
]


@pytest.mark.parametrize(("file_of", "read"), FILES)
def test_no_bit_flips_unseen(store: LogStore, file_of: Any, read: Any) -> None:
    location = file_of(store)
    path = Path(location.removeprefix("file://"))
    content, right = path.read_bytes(), read(store)
    wrong, told = [], [location]
    for bit in random.Random(29).sample(range(len(content) * 8), FLIPS):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            if read(store) != right:
                wrong.append(bit)
        except LogCorrupt as error:
            told.append(str(error))
        except Exception:  # noqa: BLE001  # whatever PyIceberg makes of it
            # Only what makes a checksum look like none is left to what reads the file then.
            assert bit // 8 < 20 or bit // 8 >= len(content) - 16, bit
    assert [text for text in told if location not in text] == []
    assert len(told) > FLIPS // 2
    assert wrong == []


@pytest.mark.parametrize(("file_of", "read"), FILES)
def test_a_file_that_was_cut_off_never_reads_as_a_shorter_one(store: LogStore, file_of: Any, read: Any) -> None:
    path = Path(file_of(store).removeprefix("file://"))
    content, right = path.read_bytes(), read(store)
    header_end = max(content.find(b"klog1"), 0)
    wrong = []
    for length in [*range(header_end, header_end + 20), *random.Random(31).sample(range(len(content)), 60)]:
        path.write_bytes(content[:length])
        try:
            if read(store) != right:
                wrong.append(length)
        except Exception:  # noqa: BLE001, S112  # an error is right, whichever it is
            continue
    assert wrong == []


def test_a_metadata_file_that_was_cut_short_is_corrupt_and_named(store: LogStore) -> None:
    location = metadata_file(store)
    path = Path(location.removeprefix("file://"))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(LogCorrupt, match=re.escape(location)):
        read_metadata(store)


def test_others_read_what_has_a_checksum(store: LogStore) -> None:
    location, others = metadata_file(store), PyArrowFileIO()
    assert Path(location.removeprefix("file://")).read_bytes().startswith(b'{"keptlog-crc32":"')
    metadata = FromInputFile.table_metadata(others.new_input(location))
    assert metadata == read_metadata(store)
    snapshot = metadata.current_snapshot()
    assert snapshot
    assert _told(snapshot.manifests(others), others) == read_manifests(store)


def test_a_file_without_a_checksum_is_read_as_it_is(store: LogStore) -> None:
    path = Path(metadata_file(store).removeprefix("file://"))
    right = read_metadata(store)
    stored = json.loads(path.read_bytes())
    del stored["keptlog-crc32"]
    path.write_text(json.dumps(stored), encoding="utf-8")
    assert read_metadata(store) == right
