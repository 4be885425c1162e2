"""What a commit writes: manifests of bounded size, only those that it must, and never another set of files."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.manifest import DataFile, ManifestEntryStatus, ManifestFile
from pyiceberg.table import CommitTableRequest, CommitTableResponse, Table

import keptlog.table.metadata.manifests as manifests_module
from keptlog.log.segment import Segment
from keptlog.table.catalogs.catalog import open_catalog
from keptlog.table.commits.loading import load_topic_table
from keptlog.table.commits.topics import TopicCreation
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.file_metrics import LiveFile, data_file_of
from keptlog.table.metadata.live_files import LiveFiles
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.metadata.without_snapshot import commit_without_snapshot

TOPIC = "users"


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    monkeypatch.setattr(manifests_module, "MANIFEST_ENTRIES", 10)
    monkeypatch.setattr(manifests_module, "_SMALL_ENTRIES", 5)
    catalog = open_catalog(tmp_path)
    TopicCreation(TOPIC, 4, {}).carry_out(catalog, TableFiles(), lambda: "elsewhere")
    return catalog


def file(partition: int, number: int) -> DataFile:
    path = f"file:///nowhere/partition={partition}/{number:020d}.parquet"
    return data_file_of(partition, Segment(path, number, number, 0, 0, 1, 100))


def add(catalog: Catalog, *files: DataFile) -> None:
    FileChange({}, {}, files).land(load_topic_table(catalog, TOPIC))


def live(table: Table) -> dict[int, list[LiveFile]]:
    return LiveFiles().of(table)


def remove(catalog: Catalog, *paths: str) -> None:
    table = load_topic_table(catalog, TOPIC)
    files = live(table)
    removed = [each for each in itertools.chain(*files.values()) if each.segment.path in paths]
    FileChange({}, {}, (), removed, files).land(table)


def manifests(catalog: Catalog) -> list[ManifestFile]:
    table = load_topic_table(catalog, TOPIC)
    snapshot = table.current_snapshot()
    return snapshot.manifests(table.io) if snapshot else []


def live_counts(catalog: Catalog) -> list[int]:
    return sorted((each.added_files_count or 0) + (each.existing_files_count or 0) for each in manifests(catalog))


def planned(catalog: Catalog) -> list[str]:
    """The files that another reader of the table would read."""
    return sorted(task.file.file_path for task in load_topic_table(catalog, TOPIC).scan().plan_files())


def test_a_large_append_is_cut_into_manifests_of_neighbours(catalog: Catalog) -> None:
    add(catalog, *[file(partition, number) for number in range(10) for partition in range(3)])

    assert live_counts(catalog) == [10, 10, 10]
    assert {len({each.partition for each in files}) for files in by_manifest(catalog).values()} == {1}


def by_manifest(catalog: Catalog) -> dict[str, list[LiveFile]]:
    files = itertools.chain(*live(load_topic_table(catalog, TOPIC)).values())
    return {
        path: list(group)
        for path, group in itertools.groupby(
            sorted(files, key=lambda each: each.manifest_path), lambda each: each.manifest_path
        )
    }


def test_only_the_manifest_of_a_removed_file_is_written_again(catalog: Catalog) -> None:
    add(catalog, *[file(partition, number) for number in range(10) for partition in range(3)])
    before = {each.manifest_path for each in manifests(catalog)}

    remove(catalog, file(1, 4).file_path)

    after = {each.manifest_path for each in manifests(catalog) if each.has_added_files() or each.has_existing_files()}
    assert len(before & after) == 2
    assert live_counts(catalog) == [0, 9, 10, 10]
    assert file(1, 4).file_path not in planned(catalog)


def test_a_removed_file_is_told_once_and_forgotten_by_the_next_commit(catalog: Catalog) -> None:
    add(catalog, file(0, 1), file(0, 2))
    remove(catalog, file(0, 1).file_path)

    table = load_topic_table(catalog, TOPIC)
    entries = [
        (entry.status, entry.data_file.file_path)
        for manifest in manifests(catalog)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
    ]
    assert sorted(entries) == [
        (ManifestEntryStatus.EXISTING, file(0, 2).file_path),
        (ManifestEntryStatus.DELETED, file(0, 1).file_path),
    ]
    add(catalog, file(0, 3))
    assert sum(each.deleted_files_count or 0 for each in manifests(catalog)) == 0


def test_small_manifests_are_put_together_and_files_keep_their_sequence_numbers(catalog: Catalog) -> None:
    for number in range(manifests_module.SMALL_MANIFESTS):
        add(catalog, file(0, number))
    assert len(manifests(catalog)) == manifests_module.SMALL_MANIFESTS
    before = sequence_numbers(catalog)

    add(catalog, file(0, 100))

    assert live_counts(catalog) == [1, 10, 10]
    assert {path: number for path, number in sequence_numbers(catalog).items() if path in before} == before


def sequence_numbers(catalog: Catalog) -> dict[str, int | None]:
    files = itertools.chain(*live(load_topic_table(catalog, TOPIC)).values())
    return {each.segment.path: each.entry.sequence_number for each in files}


def test_a_change_on_an_older_snapshot_is_refused(catalog: Catalog) -> None:
    table = load_topic_table(catalog, TOPIC)
    add(catalog, file(0, 1))

    with pytest.raises(CommitFailedException):
        FileChange({}, {}, [file(0, 2)]).land(table)

    assert planned(catalog) == [file(0, 1).file_path]


def test_a_file_that_is_no_longer_live_can_not_be_removed(catalog: Catalog) -> None:
    add(catalog, file(0, 1), file(0, 2))
    files = live(load_topic_table(catalog, TOPIC))
    remove(catalog, file(0, 1).file_path)

    with pytest.raises(ValidationException):
        FileChange({}, {}, (), files[0][:1], files).land(load_topic_table(catalog, TOPIC))

    assert planned(catalog) == [file(0, 2).file_path]


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_added_and_removed_readers_find_exactly_the_live_files(catalog: Catalog, seed: int) -> None:
    dice = random.Random(seed)
    expected: set[str] = set()
    numbers = itertools.count()
    for _ in range(40):
        if dice.random() < 0.6:
            added = [file(dice.randrange(4), next(numbers)) for _ in range(dice.choice([1, 2, 25]))]
            add(catalog, *added)
            expected |= {each.file_path for each in added}
        elif expected:
            gone = dice.sample(sorted(expected), dice.randint(1, len(expected)))
            remove(catalog, *gone)
            expected -= set(gone)

    assert planned(catalog) == sorted(expected)
    assert max(live_counts(catalog)) <= 10
    snapshot = load_topic_table(catalog, TOPIC).current_snapshot()
    assert snapshot
    assert snapshot.summary
    assert snapshot.summary["total-data-files"] == str(len(expected))


def test_a_server_is_sent_the_requirements_that_it_knows(catalog: Catalog) -> None:
    add(catalog, file(0, 0))
    table = load_topic_table(catalog, TOPIC)
    sent: list[str] = []

    class Server(NoopCatalog):
        def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
            name = {"namespace": ["keptlog"], "name": table.name()[-1]}
            asked = {"identifier": name, "requirements": requirements, "updates": updates}
            sent.append(CommitTableRequest.model_validate(asked).model_dump_json())
            return CommitTableResponse.model_construct(
                metadata=table.metadata, metadata_location=table.metadata_location
            )

    commit_without_snapshot(Server("server"), table)
    assert json.loads(sent[0])["requirements"] == [
        {"type": "assert-table-uuid", "uuid": str(table.metadata.table_uuid)},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": table.metadata.current_snapshot_id},
    ]
