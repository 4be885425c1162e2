"""What every topic must hold, commit by commit: the specification beside the table.

The catalog says when a commit is visible; at that moment the new snapshot is read back from the disk and must be what
the specification makes of the one before. So nothing is lost, doubled or resurrected without being noticed in the very
commit that does it:

    append     the batch of that run, at the next offsets, once
    ingest     what the source has from the position to the new one
    clean      ``ReferenceLog.clean`` of what the plan covered, and of nothing else
    retain     whole segments from the head, old enough for the settings
    delete     all below the offset that was asked for
    forget     nothing but watermarks that are past their time
    erase      tombstones of the keys that were asked for, or none of their records below the bounds

``Ledger.books`` has one book for each topic that ever existed, by the table's id, so that a topic which is created anew
is another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyiceberg.manifest import ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot
from typing_extensions import override

from keptlog.log.config import TopicConfig
from keptlog.log.record import Record
from keptlog.table.metadata.change import OPERATION, RUN_ID
from keptlog.table.metadata.logs import known_config
from keptlog.table.metadata.state import LogState, watermarks_paths
from tests.sim.book import (
    Book,
    Erasing,
    Intent,
    SpecifiedLog,
    Standing,
    apply,
    decoded,
    decoded_marks,
    difference,
    erase,
)
from tests.sim.catalog import Landed
from tests.sim.faults import Known
from tests.sim.storage import WatchedStorage
from tests.sim.world import World


@dataclass
class Ledger(Landed):
    """The books of one world."""

    world: World
    storage: WatchedStorage
    books: dict[str, Book] = field(default_factory=dict)
    intents: dict[str, Intent] = field(default_factory=dict)
    """Run id to what it was about to do."""
    current: dict[str, str] = field(default_factory=dict)
    """Topic to the id of its table."""
    ever_referenced: dict[str, None] = field(default_factory=dict)
    """Every file that a table has ever needed, whoever wrote it."""
    broker: Mapping[str, str] = field(default_factory=dict)
    _referenced: dict[str, set[str]] = field(default_factory=dict)
    _of_snapshot: dict[int, set[str]] = field(default_factory=dict)
    _records: dict[str, tuple[Record, ...]] = field(default_factory=dict)
    _needed_now: dict[str, set[str]] = field(default_factory=dict)
    _of_manifest: dict[str, list[tuple[str, int]]] = field(default_factory=dict)

    def book(self, topic: str) -> Book | None:
        """The book of the topic that has this name now."""
        identity = self.current.get(topic)
        return self.books[identity] if identity else None

    def referenced(self, topic: str) -> set[str]:
        """Every file that the topic's table needs now."""
        return self._referenced.get(topic, set())

    @override
    def dropped(self, name: str) -> None:
        self.books[self.current.pop(name)].is_gone = True
        self._referenced.pop(name, None)

    @override
    def looked_at(self, name: str) -> None:
        actor, identity = self.world.current, self.current.get(name)
        if actor and identity:
            actor.first_look.setdefault(name, identity)

    @override
    def committed(self, name: str, before: Table | None, after: Table) -> None:
        try:
            self._committed(name, before, after)
        except (OSError, AssertionError, KeyError, ValueError) as error:
            self.world.fail(f"topic {name}: {type(error).__name__}: {error}")

    def _committed(self, name: str, before: Table | None, after: Table) -> None:
        identity = str(after.metadata.table_uuid)
        config = TopicConfig.of(known_config(name, after.properties), self.broker)
        if before is None:
            partitions = int(after.properties["log.partitions"])
            logs = [SpecifiedLog() for _ in range(partitions)]
            self.books[identity] = Book(name, logs, [0] * partitions, [config], files=[{} for _ in logs])
            self.books[identity].location = after.location()
            self.current[name] = identity
        book = self.books[identity]
        if config != book.configs[-1]:
            book.configs.append(config)
        if self.world.current and self.world.current.is_foreign:
            book.is_moved = after.metadata.current_snapshot_id != book.recorded_id
            book.was_moved |= book.is_moved
            self._look_up(name, after)
            return
        if before and Known.CLOCK_SKEW not in self.world.known:
            times = [before.metadata.last_updated_ms, after.metadata.last_updated_ms]
            times_of = [entry.timestamp_ms for entry in after.metadata.snapshot_log]
            assert sorted(times) == times, f"the metadata's time goes back from {times[0]} to {times[1]}"
            assert sorted(times_of) == times_of, f"the times of the snapshots go back: {times_of}"
        known = {snapshot.snapshot_id for snapshot in before.metadata.snapshots} if before else set()
        new = [snapshot for snapshot in after.metadata.snapshots if snapshot.snapshot_id not in known]
        if new:
            assert len(new) == 1, "one commit made several snapshots"
            self._judge(book, new[0], after)
        elif before:
            assert not book.is_moved, "a commit is built on what another program has moved"
            self._require_unmoved(book, before, after)
        self._look_up(name, after)

    def _look_up(self, name: str, table: Table) -> None:
        """Which files the table needs now."""
        found = {table.metadata_location, *watermarks_paths(table.properties)}
        for snapshot in table.metadata.snapshots:
            if snapshot.snapshot_id not in self._of_snapshot:
                manifests = snapshot.manifests(table.io)
                paths = {path for manifest in manifests for path, _ in self._entries(manifest, table)}
                paths |= {snapshot.manifest_list, *(manifest.manifest_path for manifest in manifests)}
                self._of_snapshot[snapshot.snapshot_id] = paths
            found |= self._of_snapshot[snapshot.snapshot_id]
        self._referenced[name] = found
        self.ever_referenced |= dict.fromkeys(found)
        current = self._of_snapshot.get(table.metadata.current_snapshot_id or 0, set())
        self._needed_now[name] = current | {table.metadata_location, *watermarks_paths(table.properties)}

    def _require_unmoved(self, book: Book, before: Table, after: Table) -> None:
        """A commit that makes no snapshot moves no log."""
        assert before.metadata.current_snapshot_id == after.metadata.current_snapshot_id, "another snapshot is current"
        left = {snapshot.snapshot_id for snapshot in after.metadata.snapshots}
        delay_ms = min(config.file_delete_delay_ms for config in book.configs)
        for snapshot in before.metadata.snapshots:
            later = [s.timestamp_ms for s in before.metadata.snapshots if s.parent_snapshot_id == snapshot.snapshot_id]
            if snapshot.snapshot_id not in left and later:
                age_ms = self.world.clock_ms - max(later)
                assert age_ms >= delay_ms, f"a snapshot replaced {age_ms} ms ago is expired, the delay is {delay_ms} ms"
        for partition in range(len(book.logs)):
            states = [LogState.read(book.name, partition, table.properties) for table in (before, after)]
            was, now = ((s.log_start_offset, s.log_end_offset, s.checkpoint, s.watermarks_path) for s in states)
            assert was == now, f"{book.name}-{partition} moved without a snapshot: {was} -> {now}"

    def _judge(self, book: Book, snapshot: Snapshot, after: Table) -> None:
        properties = dict(snapshot.summary.additional_properties) if snapshot.summary else {}
        run_id, operation = properties.get(RUN_ID, ""), properties.get(OPERATION, "none")
        files, identity = self._files(book, snapshot, after), str(after.metadata.table_uuid)
        taken = [
            sorted(offset for path in was.keys() - now.keys() for offset in was[path])
            for now, was in zip(files, book.files, strict=True)
        ]
        changed = [(offsets[0], offsets[-1]) if offsets else None for offsets in taken]
        states = [LogState.read(book.name, partition, after.properties) for partition in range(len(book.logs))]
        intent = self._intent(book, run_id, operation)
        looked_first = self.world.current.first_look.get(book.name) if self.world.current else None
        if Known.ACROSS_RECREATE not in self.world.known:
            assert looked_first in {None, identity}, f"{run_id} was begun for another topic of this name"
        if isinstance(intent, Erasing):
            erase(book, intent, operation, [each is not None for each in changed], self._appended(book, files))
        else:
            apply(book, intent, run_id, changed, states)
        self._remember(book, states, operation)
        book.landed[f"{run_id}/{operation}/{len(book.landed)}"] = snapshot.snapshot_id
        book.landed_by[run_id] = self.world.current.name if self.world.current else ""
        book.files, book.recorded_id, book.is_moved = files, snapshot.snapshot_id, False
        for partition, state in enumerate(states):
            self._compare(book, partition, state, operation)
        book.seen[snapshot.snapshot_id] = tuple(tuple(book.visible(number)) for number in range(len(book.logs)))

    def _remember(self, book: Book, states: Sequence[LogState], operation: str) -> None:
        """The files of watermarks are there, and a purge has taken nothing before its time."""
        for partition, state in enumerate(states):
            path, (known_path, before) = state.watermarks_path, book.marks.get(partition, (None, {}))
            if path != known_path:
                after = decoded_marks(self.storage.disk.files[path].content) if path else {}
                if operation == "forget":
                    book.logs[partition].forget(before, after, self.world.clock_ms)
                book.marks[partition] = path, after

    def _appended(self, book: Book, files: Sequence[Iterable[str]]) -> list[list[Record]]:
        """The records behind the ends that the logs had, by partition."""
        stored = ((record for path in paths for record in self.records(path)) for paths in files)
        found = [
            [record for record in records if record.offset >= log.log_end_offset]
            for records, log in zip(stored, book.logs, strict=True)
        ]
        return [sorted(records, key=lambda record: record.offset) for records in found]

    def _intent(self, book: Book, run_id: str, operation: str) -> Intent:
        """What the run is about; a purge's fence, and news of erasures, are nobody's and move nothing."""
        intent = self.intents.get(run_id)
        if operation in {"sweep", "alter", "forget"} or (operation == "erase" and intent is None):
            intent = Standing(book.name)
        assert intent, f"a commit of nobody: {operation} {run_id}"
        assert intent.topic == book.name, f"a run for {intent.topic} landed in {book.name}"
        is_repair = isinstance(intent, Standing) and operation == "repair"
        assert is_repair or not book.is_moved, "a commit is built on what another program has moved"
        return intent

    def _files(self, book: Book, snapshot: Snapshot, table: Table) -> list[dict[str, tuple[int, ...]]]:
        found: list[dict[str, tuple[int, ...]]] = [{} for _ in book.logs]
        for manifest in snapshot.manifests(table.io):
            for path, partition in self._entries(manifest, table):
                found[partition][path] = tuple(record.offset for record in self.records(path))
                if path not in book.ever_live:
                    book.ever_live[path] = None
                    book.values[path] = tuple(r.value for r in self.records(path) if r.value)
        return found

    def _entries(self, manifest: ManifestFile, table: Table) -> list[tuple[str, int]]:
        """The files of a manifest, with their partitions; it never changes."""
        if manifest.manifest_path not in self._of_manifest:
            files = (entry.data_file for entry in manifest.fetch_manifest_entry(table.io))
            self._of_manifest[manifest.manifest_path] = [(file.file_path, file.partition[0]) for file in files]
        return self._of_manifest[manifest.manifest_path]

    def records(self, path: str) -> tuple[Record, ...]:
        """What a segment held when it was first seen; nothing if it was not there then."""
        if path not in self._records:
            file = self.storage.disk.files.get(path)
            self._records[path] = decoded(file.content) if file else ()
        return self._records[path]

    def needed_now(self, topic: str) -> set[str]:
        """Every file that a reader or a writer of the current snapshot needs."""
        return self._needed_now.get(topic, set())

    def _compare(self, book: Book, partition: int, state: LogState, operation: str) -> None:
        log, where = book.logs[partition], f"{book.name}-{partition} after a commit of {operation}"
        stored = sorted(
            (record for path in book.files[partition] for record in self.records(path)),
            key=lambda record: record.offset,
        )
        found = [record for record in stored if record.offset >= state.log_start_offset]
        expected = book.visible(partition)
        assert found == expected, f"{where} {difference(expected, found)}"
        assert state.log_end_offset == log.log_end_offset, f"{where} ends at {state}, not at {log.log_end_offset}"
        assert state.log_start_offset == book.starts[partition], f"{where} begins at {state.log_start_offset}"
        if state.checkpoint is not None and state.checkpoint >= state.log_start_offset:
            assert state.checkpoint == log.first_dirty_offset, (
                f"{where} has the checkpoint {state.checkpoint}, not {log.first_dirty_offset}"
            )
