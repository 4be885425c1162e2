"""Homes of many topics that are copies of one, and what a process pays that looks at them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.copied_topics import make_copies, register, with_files
from benchmarks.many_topics import Shape, topic_name
from benchmarks.ticks import measured
from keptlog.passes.stored_files import wrong_on_disk
from keptlog.table.catalogs.catalog import open_catalog
from tests.logs import open_store

NOW_MS = 1_700_000_000_000


def test_a_copied_topic_is_as_commits_have_made_the_first_one(tmp_path: Path) -> None:
    locations = make_copies(tmp_path, 3, Shape(partitions=2, segments=4), NOW_MS)
    register(open_catalog(tmp_path), locations)
    store = open_store(tmp_path)

    seen = [store.observe(topic_name(number)).logs for number in range(3)]
    first, *copies = ([str(replace(log, topic_id=None)) for log in logs] for logs in seen)

    assert first[0].count(topic_name(0)) == 5  # of the log, and of each segment
    for number, copy in enumerate(copies, 1):
        assert copy == [log.replace(topic_name(0), topic_name(number)) for log in first]
    assert len({log.topic_id for logs in seen for log in logs}) == 3


def test_files_that_are_made_of_segments_are_whole_to_whoever_asks_the_disk(tmp_path: Path) -> None:
    register(open_catalog(tmp_path), make_copies(tmp_path, 2, Shape(partitions=2, segments=4), NOW_MS))
    logs = open_store(tmp_path).observe(topic_name(1)).logs
    assert len(wrong_on_disk(logs)) == 2

    with_files(logs)

    assert wrong_on_disk(logs) == {}


def test_a_quiet_tick_asks_the_embedded_catalog_once_for_all_topics(tmp_path: Path) -> None:
    [row] = measured(tmp_path, 3, ["sqlite"])

    assert (row.catalog, row.topics, row.logs, row.tick_requests, row.is_whole) == ("sqlite", 3, 150, 1, True)
    assert row.pss_bytes > 0
