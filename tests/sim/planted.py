"""Bugs that are put into the product on purpose: the simulator must find each of them.

``python -m tests.sim.planted`` makes the table of docs/testing.md: for each bug the histories that it took. One that is
not found within ``MOST_HISTORIES`` says that an oracle, a program or a fault is missing.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq
from pyiceberg.table import StagedTable, Table
from pyiceberg.table.update import AddSnapshotUpdate, AssertRefSnapshotId, TableRequirement, TableUpdate
from pyiceberg.typedef import Identifier
from typing_extensions import override

from keptlog.log.config import TopicConfig
from keptlog.log.verdict import CleanBounds
from keptlog.storage import segment_reader
from keptlog.storage.files import StoredFile
from keptlog.table.chain.receipt_chain import ATTEMPT
from keptlog.table.changes import append, arrival, swap
from keptlog.table.changes.append import Append
from keptlog.table.changes.arrival import Ingestion
from keptlog.table.commits.commit import Committer, Land, Prepare
from keptlog.table.metadata.change import Change
from keptlog.table.metadata.forward_in_time import ForwardInTime
from keptlog.table.metadata.manifests import FileChange
from keptlog.table.metadata.references import comparable
from keptlog.table.metadata.runs import LandedChange
from keptlog.table.purging.purge import Purge
from keptlog.table.purging.purge_receipt import PurgeReceipt
from keptlog.table.purging.quiet import PurgeTimes
from keptlog.table.purging.sweep import Fence
from keptlog.table.removal.journal import Journal
from keptlog.table.removal.removal import Removal
from keptlog.table.removal.spared import Spared
from keptlog.table.store import LogStore
from tests.sim.run import play
from tests.sim.storage import SimulatedFiles, Storage
from tests.sim.world import Broken

MOST_HISTORIES = 200
Plant = Callable[[], AbstractContextManager[object]]


@contextmanager
def checkpoint_too_early() -> Iterator[None]:
    """A clean moves the checkpoint to the log end, also over what came meanwhile."""
    written = FileChange.written

    def moved(change: FileChange, table: Any) -> Land:
        properties = {
            name: table.properties[name.replace("first-dirty", "log-end")] if "first-dirty" in name else value
            for name, value in change.properties.items()
        }
        return written(dataclasses.replace(change, properties=properties), table)

    with patch.object(FileChange, "written", moved):
        yield


@contextmanager
def watermarks_dropped() -> Iterator[None]:
    """A clean forgets the watermarks of deleted keys."""
    written = FileChange.written

    def without(change: FileChange, table: Any) -> Land:
        properties = {name: "" if name.endswith(".watermarks") else value for name, value in change.properties.items()}
        return written(dataclasses.replace(change, properties=properties), table)

    with patch.object(FileChange, "written", without):
        yield


def tombstones_too_early() -> AbstractContextManager[object]:
    """A tombstone goes with the pass after its first, whatever delete.retention.ms says."""
    return patch.object(CleanBounds, "new_delete_horizon_ms", property(lambda bounds: bounds.now_ms))


@contextmanager
def journal_skipped() -> Iterator[None]:
    """A purge commits without having written down what it is about to delete."""
    write_bytes = SimulatedFiles.write_bytes

    def skipping(files: SimulatedFiles, path: str, content: bytes) -> None:
        if "/metadata/gc/" not in path:
            write_bytes(files, path, content)

    with patch.object(SimulatedFiles, "write_bytes", skipping):
        yield


@contextmanager
def compare_and_swap_dropped() -> Iterator[None]:
    """A commit lands on whatever snapshot is current, under a number of its own."""
    stage = ForwardInTime._update_and_stage_table

    def renumbered(
        catalog: ForwardInTime,
        table: Table | None,
        identifier: Identifier,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> StagedTable:
        number = table.last_sequence_number + 1 if table else 1
        newest = tuple(
            each.model_copy(update={"snapshot": each.snapshot.model_copy(update={"sequence_number": number})})
            if isinstance(each, AddSnapshotUpdate)
            else each
            for each in updates
        )
        return stage(catalog, table, identifier, requirements, newest)

    with (
        patch.object(AssertRefSnapshotId, "validate", lambda *_: None),
        patch.object(ForwardInTime, "_update_and_stage_table", renumbered),
    ):
        yield


@contextmanager
def grace_ignored() -> Iterator[None]:
    """A purge sweeps staged files however young they are."""
    all_of = LogStore.purge
    with patch.object(LogStore, "purge", lambda store, topic, now_ms, *_: all_of(store, topic, now_ms, 0)):
        yield


def delay_ignored() -> AbstractContextManager[object]:
    """A purge expires snapshots that were replaced a moment ago."""
    times_of = PurgeTimes.of
    return patch.object(PurgeTimes, "of", lambda guard, now_ms, _, grace_ms: times_of(guard, now_ms, 0, grace_ms))


def idempotence_forgotten() -> AbstractContextManager[object]:
    """A commit without an answer is made again, landed or not."""
    return patch("keptlog.table.commits.commit.landed_before", lambda *_: None)


def expired_runs_forgotten() -> AbstractContextManager[object]:
    """What a purge has expired is not asked for when a run is sent again."""
    return patch("keptlog.table.metadata.runs._remembered", lambda *_: ((), []))


def deletions_not_synced() -> AbstractContextManager[object]:
    """A receipt is issued while a power loss can still bring the file back."""
    return patch.object(SimulatedFiles, "make_deletions_durable", lambda *_: None)


@contextmanager
def staged_not_checked() -> Iterator[None]:
    """Nobody looks whether a purge has swept what is about to be committed."""
    nothing = lambda *_: None  # noqa: E731
    with (
        patch.object(append, "require_staged", nothing),
        patch.object(swap, "require_staged", nothing),
        patch.object(arrival, "require_staged", nothing),
    ):
        yield


def freshness_not_checked() -> AbstractContextManager[object]:
    """A clean lands on a log that is no longer the one it was planned from."""
    return patch.object(swap, "require_cleanable", lambda *_: None)


def offsets_given_twice() -> AbstractContextManager[object]:
    """An append that lost a race keeps the offsets that it had chosen."""
    return patch.object(Append, "_move_to_the_ends", lambda *_: None)


def position_not_checked() -> AbstractContextManager[object]:
    """An ingest lands from another position than it was planned from."""
    return patch.object(Ingestion, "_require_fresh", lambda *_: None)


def retention_always() -> AbstractContextManager[object]:
    """Retention takes old segments of topics that only are compacted."""
    return patch.object(TopicConfig, "has_retention", property(lambda _: True))


@contextmanager
def watermarks_unreferenced() -> Iterator[None]:
    """A purge does not know that watermarks are needed."""
    with patch("keptlog.table.metadata.references.watermarks_paths", lambda _: []):
        yield


@dataclass(frozen=True)
class _LateDeletion(SimulatedFiles):
    """Deletes no segment before it is told to."""

    put_off: list[str] = dataclasses.field(default_factory=list, kw_only=True)

    @override
    def delete(self, path: str) -> None:
        if "/data/" in path:
            self.put_off.append(path)
        else:
            super().delete(path)


@contextmanager
def receipts_before_deletion() -> Iterator[None]:
    """A purge issues its receipt without a look at what is gone, and then deletes."""
    purge_one, look_again = Purge.purge, Removal.look_again

    def unlooked(one: Removal, _: Iterable[Journal]) -> list[StoredFile]:
        return look_again(one, ())

    def too_early(one: Purge) -> PurgeReceipt:
        files = one.files
        assert isinstance(files, SimulatedFiles)
        late = _LateDeletion(storage=files.storage)
        one.files = late
        receipt = purge_one(one)
        for path in late.put_off:
            files.delete(path)
        return receipt

    with patch.object(Purge, "purge", too_early), patch.object(Removal, "look_again", unlooked):
        yield


def fence_skipped() -> AbstractContextManager[object]:
    """A purge sweeps without a fence."""
    return patch.object(Fence, "condemn", lambda *_: None)


@contextmanager
def rollback_undetected() -> Iterator[None]:
    """Nobody asks whether state and snapshot belong together."""
    commit = Committer.commit

    def unasked(one: Committer, change: Change, prepare: Prepare) -> LandedChange | None:
        return commit(one, dataclasses.replace(change, require_fit=lambda _: None), prepare)

    with patch.object(Committer, "commit", unasked), patch.object(append, "require_own", lambda _: None):
        yield


@contextmanager
def checksums_off() -> Iterator[None]:
    """What is read of a segment is believed."""
    with (
        patch.object(segment_reader, "pages_checksum", lambda _: None),
        patch.object(segment_reader, "_opened", lambda source, _: pq.ParquetFile(source)),
    ):
        yield


def copy_unnoticed() -> AbstractContextManager[object]:
    """A purge does not ask whether the storage knows more than its catalog."""
    return patch("keptlog.table.purging.purge.spared_references", lambda *_: Spared())


@contextmanager
def sync_skipped() -> Iterator[None]:
    """What a task writes is not waited for until it is on the disk."""
    sync = Storage.sync

    def only_metadata(storage: Storage, path: str) -> None:
        if "/data/" not in path:
            sync(storage, path)

    with patch.object(Storage, "sync", only_metadata):
        yield


def drafts_deleted_unsealed() -> AbstractContextManager[object]:
    """Drafts are deleted, and nobody has sealed them."""
    return patch("keptlog.table.removal.drafts.why_not_sealed", lambda *_: None)


def sealed_again() -> AbstractContextManager[object]:
    """Nobody asks whether the chain has a receipt of this id."""

    def prepare(one: Any, table: Any, summary: dict[str, str]) -> Land:
        attempt = one._written(table, one.chain.known(table), one.drafts)
        return FileChange(summary | {ATTEMPT: attempt.name}, attempt.properties).written(table)

    return patch("keptlog.table.chain.receipt_chain._Sealing._prepare", prepare)


@contextmanager
def receipts_not_synced() -> Iterator[None]:
    """The files of sealed receipts are not waited for."""
    sync = Storage.sync

    def but_receipts(storage: Storage, path: str) -> None:
        if "/keptlog_receipts/chain/receipts/" not in path:
            sync(storage, path)

    with patch.object(Storage, "sync", but_receipts):
        yield


def owners_forgotten() -> AbstractContextManager[object]:
    """A file that two journals name is in the receipts of both."""

    def own(one: Removal, is_meant: Callable[[Journal], bool], needed: Any) -> dict[str, Journal]:
        meant = {path: journal for path, journal in one.journals.items() if is_meant(journal)}
        return {path: each.only(lambda file: comparable(file.path) not in needed) for path, each in meant.items()}

    return patch.object(Removal, "own", own)


PLANTED: dict[str, Plant] = {
    "checkpoint too early": checkpoint_too_early,
    "tombstone a pass too early": tombstones_too_early,
    "journal skipped": journal_skipped,
    "compare-and-swap dropped": compare_and_swap_dropped,
    "grace ignored": grace_ignored,
    "delay ignored": delay_ignored,
    "idempotence forgotten": idempotence_forgotten,
    "expired runs forgotten": expired_runs_forgotten,
    "staged not checked": staged_not_checked,
    "freshness not checked": freshness_not_checked,
    "offsets given twice": offsets_given_twice,
    "position not checked": position_not_checked,
    "retention always": retention_always,
    "watermarks dropped": watermarks_dropped,
    "watermarks unreferenced": watermarks_unreferenced,
    "receipts before deletion": receipts_before_deletion,
    "drafts deleted unsealed": drafts_deleted_unsealed,
    "sealed again": sealed_again,
    "receipts not synced": receipts_not_synced,
    "owners forgotten": owners_forgotten,
    "sync skipped": sync_skipped,
    "deletions not synced": deletions_not_synced,
    "fence skipped": fence_skipped,
    "rollback undetected": rollback_undetected,
    "checksums off": checksums_off,
    "copied home unnoticed": copy_unnoticed,
}


@dataclass(frozen=True)
class Found:
    """How a planted bug was found; null if it was not."""

    name: str
    histories: int
    seed: int | None
    oracle: str | None


def hunt(name: str, first_seed: int = 1, most: int = MOST_HISTORIES) -> Found:
    """Play histories with one planted bug until one breaks an oracle.

    Raises:
        AssertionError: the bug does not fit what it is planted in any more, and nothing was found by that.
    """
    for number in range(most):
        outcome = play(first_seed + number, planted=PLANTED[name])
        if outcome.broken:
            assert outcome.broken.startswith(Broken.__name__), f"{name}: {outcome.broken}"
            return Found(name, number + 1, outcome.seed, outcome.broken)
    return Found(name, most, None, None)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.planted", description="Find every planted bug.")
    parser.add_argument("names", nargs="*", default=list(PLANTED), metavar="NAME", help="all, if none is named")
    parser.add_argument("--seed", type=int, default=1, metavar="SEED", help="that of the first history")
    parser.add_argument("--jobs", type=int, default=2, metavar="JOBS", help="processes to hunt in")
    wanted = parser.parse_args(arguments)
    missed = 0
    sys.stdout.write("| planted | histories until it was found | by |\n|---|---|---|\n")
    with ProcessPoolExecutor(wanted.jobs, mp_context=get_context("spawn")) as pool:
        for found in pool.map(partial(hunt, first_seed=wanted.seed), wanted.names):
            missed += found.seed is None
            by = "not found" if found.oracle is None else found.oracle.partition("\n")[0][:110]
            sys.stdout.write(f"| {found.name} | {found.histories} | {by} |\n")
            sys.stdout.flush()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
