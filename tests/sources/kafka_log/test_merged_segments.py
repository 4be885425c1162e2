"""Segments that a running broker's cleaner puts together while they are read are no damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt, StorageUnavailable
from keptlog.sources.kafka_log.reader import read_segment
from keptlog.sources.kafka_log.segments import segments_to_read
from keptlog.sources.kafka_log.transactions import scan_log
from tests.ingest.directories import some_batch
from tests.sources.kafka_log.encoder import write_segment


def write(folder: Path) -> None:
    for base_offset in (0, 10, 20):
        write_segment(folder, base_offset, some_batch(base_offset))


def merge(folder: Path) -> None:
    """The first two segments, as ``replaceSegments`` of Kafka's ``UnifiedLog`` does it."""
    second = folder / f"{10:020d}.log"
    second.rename(second.with_suffix(".log.deleted"))
    write_segment(folder, 0, [some_batch(0), some_batch(10)])


def test_who_looks_at_a_log_whose_segments_were_merged_since_they_were_listed_tries_again(tmp_path: Path) -> None:
    write(tmp_path)
    listed = segments_to_read(tmp_path)
    merge(tmp_path)
    with pytest.raises(StorageUnavailable, match=r"0\.log, or the segment behind it, was replaced .* try again"):
        scan_log(listed)
    assert scan_log(segments_to_read(tmp_path)).log_end_offset == 30


def test_who_reads_a_segment_that_was_merged_since_its_log_was_looked_at_tries_again(tmp_path: Path) -> None:
    write(tmp_path)
    listed = segments_to_read(tmp_path)
    scan = scan_log(listed)
    merge(tmp_path)
    with pytest.raises(StorageUnavailable, match="try again"):
        list(read_segment(listed[0], 0, scan.for_segment(listed[0])))


def test_a_segment_with_offsets_of_the_next_one_is_damaged_if_that_is_still_there(tmp_path: Path) -> None:
    write(tmp_path)
    write_segment(tmp_path, 0, [some_batch(0), some_batch(10)])
    with pytest.raises(LogCorrupt, match="lies behind 9"):
        scan_log(segments_to_read(tmp_path))
