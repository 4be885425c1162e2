"""A bare table says what PyIceberg's table says, and what is unusual is left to PyIceberg."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Table

from keptlog.log.holder import Terms
from keptlog.table.io.metadata_checksums import with_checksum, without_checksum
from keptlog.table.metadata.history import history_of
from keptlog.table.metadata.lineage import lineage_of
from keptlog.table.metadata.live_segments import LiveSegments
from keptlog.table.metadata.logs import StoredTopic
from keptlog.table.metadata.references import Manifests, all_references
from keptlog.table.namespaces import NAMESPACE
from keptlog.table.reading.bare import as_table, bare_table
from keptlog.table.removal.held import held_in
from keptlog.table.removal.superseded import SupersededFiles
from keptlog.table.store import LogStore
from keptlog.table.table_look import TableLook
from tests.table.foreign import current_id, expire, insert, roll_back, table_of
from tests.table.purges import clock_ms
from tests.table.stores import TOPIC, append_each, clean, create

_NAMES = ("table_uuid", "location", "properties", "last_updated_ms", "last_sequence_number", "current_snapshot_id")
_OF_SNAPSHOT = ("snapshot_id", "parent_snapshot_id", "sequence_number", "timestamp_ms", "manifest_list")


def bare(table: Table) -> Table:
    found = bare_table((NAMESPACE, TOPIC), table.metadata_location)
    assert found is not None
    return as_table(found)


def told(table: Table) -> list[Any]:
    """All that the metadata file says and lookers ask for."""
    metadata = table.metadata
    snapshots = [
        [*(getattr(each, name) for name in _OF_SNAPSHOT), each.summary and _summary(each.summary)]
        for each in metadata.snapshots
    ]
    refs = {name: (each.snapshot_id, each.snapshot_ref_type.value) for name, each in metadata.refs.items()}
    statistics = [
        (each.snapshot_id, each.statistics_path, each.file_size_in_bytes)
        for each in [*metadata.statistics, *metadata.partition_statistics]
    ]
    logged = [each.metadata_file for each in metadata.metadata_log]
    changes = [(each.snapshot_id, each.timestamp_ms) for each in metadata.snapshot_log]
    current = table.current_snapshot()
    names = [str(getattr(metadata, name)) for name in _NAMES]
    return [table.name(), names, snapshots, refs, statistics, logged, changes, current and current.snapshot_id]


def _summary(summary: Any) -> tuple[str, dict[str, str]]:
    return summary.operation.value, dict(summary.additional_properties)


def nothing(_: LogStore, __: Path) -> None:
    """A topic to which nothing was ever appended."""


def appended(store: LogStore, _: Path) -> None:
    append_each(store, [("a", "1"), ("b", "2")], [("a", "3"), ("b", None)], [("c", "4")])


def cleaned(store: LogStore, home: Path) -> None:
    appended(store, home)
    clean(store)


def tagged(store: LogStore, home: Path) -> None:
    appended(store, home)
    table_of(home).manage_snapshots().create_tag(current_id(home), "audit").commit()
    clean(store)
    table_of(home).manage_snapshots().create_branch(current_id(home), "trial").commit()
    append_each(store, [("d", "5")])


def expired(store: LogStore, home: Path) -> None:
    cleaned(store, home)
    expire(home, table_of(home).metadata.snapshots[0].snapshot_id)


def purged(store: LogStore, home: Path) -> None:
    cleaned(store, home)
    store.purge(TOPIC, clock_ms() + 40 * 86_400_000)
    append_each(store, [("e", "6")])


STORIES = [nothing, appended, cleaned, tagged, expired, purged]
Story = Callable[[LogStore, Path], None]


@pytest.mark.parametrize("story", STORIES)
def test_it_says_what_the_metadata_file_says(tmp_path: Path, story: Story) -> None:
    story(create(tmp_path, 2), tmp_path)
    table = table_of(tmp_path)
    assert told(bare(table)) == told(table)


@pytest.mark.parametrize("story", STORIES)
def test_what_is_seen_through_it_is_what_is_seen_through_the_catalog(tmp_path: Path, story: Story) -> None:
    store = create(tmp_path, 2)
    story(store, tmp_path)
    table, terms = table_of(tmp_path), Terms(0)
    now_ms = time.time_ns() // 1_000_000
    either: Sequence[Table] = (table, bare(table))
    looked: list[StoredTopic] = [TableLook().at(each) for each in either]
    assert looked[1] == looked[0]
    held = [held_in(lambda each=each: each, store.files, terms, now_ms) for each in either]  # type: ignore[misc]
    assert held[1] == held[0]
    histories = [history_of(store.files, each, now_ms, 86_400_000) for each in either]
    assert histories[1] == histories[0]
    assert all_references(either[1]) == all_references(either[0])


@pytest.mark.parametrize("kind", ["rolled back", "foreign"])
def test_it_shows_that_somebody_else_was_there(tmp_path: Path, kind: str) -> None:
    appended(create(tmp_path), tmp_path)
    if kind == "foreign":
        insert(tmp_path, 9)
    else:
        roll_back(tmp_path, table_of(tmp_path).metadata.snapshots[0].snapshot_id)
    table = table_of(tmp_path)
    seen, wanted = lineage_of(bare(table)), lineage_of(table)
    assert not seen.is_own
    assert seen.told() == wanted.told()


def rewritten(table: Table, change: Callable[[dict[str, Any]], object]) -> None:
    """The metadata file with something else in it, and with the checksum of that."""
    path = Path(table.metadata_location.removeprefix("file://"))
    stored = json.loads(without_checksum(path.name, path.read_bytes()))
    change(stored)
    path.write_bytes(with_checksum(path.name, json.dumps(stored, separators=(",", ":")).encode()))


@pytest.mark.parametrize(
    "change",
    [
        lambda stored: stored.update({"format-version": 3}),
        lambda stored: stored.update({"current-schema-id": 7}),
        lambda stored: stored.update({"default-spec-id": 7}),
        lambda stored: stored.update({"default-sort-order-id": 7}),
        lambda stored: stored.pop("location"),
        lambda stored: stored["properties"].update({"keptlog.format-version": "99.0"}),
        lambda stored: stored["snapshots"][0].update({"timestamp-ms": "yesterday"}),
        lambda stored: stored["snapshots"][0]["summary"].pop("operation"),
    ],
)
def test_what_is_no_table_of_ours_is_left_to_pyiceberg(
    tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    appended(create(tmp_path), tmp_path)
    table = table_of(tmp_path)
    rewritten(table, lambda _: None)
    assert bare_table((NAMESPACE, TOPIC), table.metadata_location)
    rewritten(table, change)
    assert bare_table((NAMESPACE, TOPIC), table.metadata_location) is None


def test_a_metadata_file_that_is_damaged_gone_or_elsewhere_is_left_to_pyiceberg(tmp_path: Path) -> None:
    appended(create(tmp_path), tmp_path)
    location = table_of(tmp_path).metadata_location
    path = Path(location.removeprefix("file://"))
    assert bare_table((NAMESPACE, TOPIC), location.replace("file://", "s3://bucket")) is None
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"cleanup", b"cleanUp"))
    assert bare_table((NAMESPACE, TOPIC), location) is None
    path.unlink()
    assert bare_table((NAMESPACE, TOPIC), location) is None


@pytest.mark.parametrize("content", [None, b"Obj\x01"])
def test_a_manifest_that_is_gone_or_damaged_is_told_as_pyiceberg_tells_it(
    tmp_path: Path, content: bytes | None
) -> None:
    appended(create(tmp_path), tmp_path)
    table = table_of(tmp_path)
    snapshot = table.current_snapshot()
    assert snapshot
    path = Path(snapshot.manifests(table.io)[0].manifest_path.removeprefix("file://"))
    path.unlink() if content is None else path.write_bytes(content)
    errors = []
    for each in (table, bare(table)):
        with pytest.raises(Exception, match="manifest") as raised:
            LiveSegments().of(each)
        errors.append((type(raised.value), str(raised.value)))
        shown = SupersededFiles().of(each)
        assert shown == ()
    assert errors[1] == errors[0]


def test_manifests_of_a_codec_that_is_not_known_here_are_read_all_the_same(tmp_path: Path) -> None:
    store = create(tmp_path)
    with_codec = table_of(tmp_path).transaction()
    with_codec.set_properties({"write.avro.compression-codec": "zstd"})
    with_codec.commit_transaction()
    appended(store, tmp_path)
    insert(tmp_path, 9)
    table = table_of(tmp_path)
    assert b"zstandard" in b"".join(path.read_bytes() for path in tmp_path.rglob("*.avro"))
    for snapshot in table.metadata.snapshots:
        (same,) = (each for each in bare(table).metadata.snapshots if each.snapshot_id == snapshot.snapshot_id)
        seen, wanted = Manifests(TOPIC, bare(table).io), Manifests(TOPIC, table.io)
        paths = [each.manifest_path for each in wanted.of(snapshot)]
        assert [each.manifest_path for each in seen.of(same)] == paths
        for ours, theirs in zip(seen.of(same), wanted.of(snapshot), strict=True):
            assert seen.files_in(ours) == wanted.files_in(theirs)
