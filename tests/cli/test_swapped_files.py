"""A table's own file in the place of another is whole, and told all the same, before anything is deleted for good."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.commits.loading import load_topic_table
from keptlog.table.io.metadata_checksums import without_checksum
from tests.cli.conftest import Outcome, Run
from tests.older_checksums import with_unnamed_checksum

TOPICS = ("aa", "bb")
DAY_MS = 24 * 3_600_000


@dataclass(frozen=True)
class Swap:
    """What takes the place of what, of these two topics."""

    of: Callable[[Table, Table], tuple[str, str]]
    is_told_of_older: bool
    """Whether it is also seen of files that a keptlog of before format 1.4 wrote."""


def _current(table: Table) -> Snapshot:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return snapshot


def _manifest(table: Table) -> str:
    """The one that the newest snapshot has brought."""
    current = _current(table)
    return next(
        each.manifest_path for each in current.manifests(table.io) if each.added_snapshot_id == current.snapshot_id
    )


def older_metadata(_: Table, bb: Table) -> tuple[str, str]:
    return bb.metadata.metadata_log[-1].metadata_file, bb.metadata_location


def others_metadata(aa: Table, bb: Table) -> tuple[str, str]:
    return aa.metadata_location, bb.metadata_location


def others_list(aa: Table, bb: Table) -> tuple[str, str]:
    return _current(aa).manifest_list, _current(bb).manifest_list


def older_list(_: Table, bb: Table) -> tuple[str, str]:
    return bb.metadata.snapshots[-2].manifest_list, _current(bb).manifest_list


def others_manifest(aa: Table, bb: Table) -> tuple[str, str]:
    return _manifest(aa), _manifest(bb)


SWAPS = [
    pytest.param(Swap(older_metadata, is_told_of_older=False), id="metadata by its predecessor"),
    pytest.param(Swap(others_metadata, is_told_of_older=False), id="metadata by another topic's"),
    pytest.param(Swap(others_list, is_told_of_older=True), id="manifest list by another topic's"),
    pytest.param(Swap(older_list, is_told_of_older=True), id="manifest list by its predecessor"),
    pytest.param(Swap(others_manifest, is_told_of_older=True), id="manifest by another topic's"),
]


@pytest.fixture
def two_topics(keptlog: Run, home: Path, tmp_path: Path) -> dict[str, str]:
    """Two topics of three records each, and what a reader gets of them."""
    batch = tmp_path / "batch.jsonl"
    for topic in TOPICS:
        assert keptlog("topic", "create", topic, "--config", "cleanup.policy=compact").code == 0
        for number in range(3):
            batch.write_text(f'{{"key": "{number}", "value": "of-{topic}", "timestamp": 1767225600000}}\n')
            assert keptlog("append", topic, "--file", str(batch), "--quiet").code == 0
    assert home.is_dir()
    return {topic: keptlog("read", topic).out for topic in TOPICS}


def path_of(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def swapped(home: Path, swap: Swap) -> str:
    """Put one file in the place of the other; gives what was written over."""
    aa, bb = (load_topic_table(open_catalog(home), topic) for topic in TOPICS)
    source, target = swap.of(aa, bb)
    shutil.copyfile(path_of(source), path_of(target))
    # What was seen of a topic before is right, and would be told without a look at these files.
    shutil.rmtree(home / "cache", ignore_errors=True)
    return target


def files(home: Path) -> set[Path]:
    return {path for path in (home / "warehouse").rglob("*") if path.is_file() and "bb" in path.parts}


def require_refused(told: Outcome, file: str) -> None:
    assert told.code != 0
    [line] = [line for line in told.err.splitlines() if file in line]
    assert "topic bb" in line
    assert line.count("put the file back from a copy of the storage") == 1


def refuse_all(keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch, swap: Swap) -> str:
    """Read, append and purge refuse in one line each, and nothing of the topic is gone then; gives the file."""
    file, before = swapped(home, swap), files(home)
    require_refused(keptlog("read", "bb"), file)
    if swap.of is not others_manifest:  # what no append reads
        require_refused(keptlog("append", "bb", "--file", str(home.with_name("batch.jsonl")), "--quiet"), file)
    for days in (3, 40):
        monkeypatch.setenv("KEPTLOG_NOW_MS", str(time.time_ns() // 1_000_000 + days * DAY_MS))
        require_refused(keptlog("purge"), file)
        monkeypatch.delenv("KEPTLOG_NOW_MS")
    assert files(home) >= before
    return file


@pytest.mark.parametrize("swap", SWAPS)
def test_it_is_refused_and_nothing_is_deleted_until_the_file_is_back(
    keptlog: Run, home: Path, two_topics: dict[str, str], monkeypatch: pytest.MonkeyPatch, swap: Swap
) -> None:
    copy = home.with_name("copy")
    shutil.copytree(home, copy)
    file = refuse_all(keptlog, home, monkeypatch, swap)
    assert keptlog("read", "aa").out == two_topics["aa"]
    shutil.copyfile(copy / path_of(file).relative_to(home), path_of(file))
    assert keptlog("read", "bb").out == two_topics["bb"]
    assert keptlog("verify").code == 0


@pytest.mark.parametrize("swap", SWAPS)
def test_verify_and_doctor_name_the_file_its_cause_and_what_to_do(
    keptlog: Run, home: Path, two_topics: dict[str, str], swap: Swap
) -> None:
    assert two_topics
    file = swapped(home, swap)
    require_refused(keptlog("verify"), file)
    told = keptlog("doctor", "--no-probes")
    assert told.code == 1
    assert f"{file} has the content of another file" in told.out
    assert "cause: the file was cut off, written over or deleted by something else than keptlog" in told.out
    assert "next:  put the file back from a copy of the storage" in told.out
    assert "1 problem\n" in told.out


@pytest.mark.parametrize("swap", [each for each in SWAPS if each.values[0].is_told_of_older])  # type: ignore[union-attr]
def test_of_files_without_their_names_it_is_refused_too(
    keptlog: Run, home: Path, two_topics: dict[str, str], monkeypatch: pytest.MonkeyPatch, swap: Swap
) -> None:
    for path in (home / "warehouse").rglob("*"):
        if path.name.endswith((".avro", ".metadata.json")):
            path.write_bytes(with_unnamed_checksum(path.name, without_checksum(path.name, path.read_bytes())))
    assert {topic: keptlog("read", topic).out for topic in TOPICS} == two_topics
    refuse_all(keptlog, home, monkeypatch, swap)
