"""Probes of what a catalog shows: the newest state at once, and older snapshots until somebody expires them."""

from __future__ import annotations

from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from keptlog.storage.segment_reader import read_row_groups
from keptlog.table.doctor.catalog_probe import Probe, require
from keptlog.table.doctor.scratch import Scratch, offsets_in
from keptlog.table.metadata.live_files import LiveFiles

_COMMITS = 5


def _snapshots(table: Table) -> list[Snapshot]:
    return sorted(table.metadata.snapshots, key=lambda each: each.sequence_number or 0)


def snapshots_stay(scratch: Scratch) -> str:
    """Five commits; then all of them are listed, and the second one is read, record by record."""
    made: list[int] = []
    scratch.create("history")
    for offset in range(1, _COMMITS + 1):
        scratch.append("history", offset)
        current = scratch.load("history").current_snapshot()
        made += [current.snapshot_id] if current else []
    table = scratch.load("history", scratch.open_another())
    listed = [each.snapshot_id for each in _snapshots(table)]
    require(listed == made, f"of {_COMMITS} snapshots {len(listed)} are listed: {_missing(made, listed)} missing")
    shown = offsets_in(table, table.snapshot_by_id(made[1]))
    require(shown == [1, 2], f"the second snapshot shows the records {shown}, not [1, 2]")
    files = LiveFiles().of(table, table.snapshot_by_id(made[1]))[0]
    read = [
        offset
        for file in files
        for rows in read_row_groups(scratch.files, file.segment, ["offset"])
        for offset in rows["offset"].to_pylist()
    ]
    require(read == [1, 2], f"the second snapshot's files have the records {read}, not [1, 2]")
    return f"all {_COMMITS} snapshots are listed, and an older one can be read"


def _missing(made: list[int], listed: list[int]) -> str:
    missing = len(set(made).difference(listed))
    return f"{missing} {'is' if missing == 1 else 'are'}"


def what_was_written_is_read(scratch: Scratch) -> str:
    """Two connections that take turns, each knows the table from before; then the table is dropped and made again."""
    scratch.create("fresh")
    connections = (scratch.catalog, scratch.open_another())
    for offset in range(1, _COMMITS + 1):
        for each in connections:
            scratch.load("fresh", each)
        writer, reader = connections[offset % 2], connections[1 - offset % 2]
        scratch.append("fresh", offset, {"probe.offset": str(offset)}, catalog=writer)
        for who, each in (("the connection that committed", writer), ("another connection", reader)):
            table = scratch.load("fresh", each)
            is_fresh = table.properties.get("probe.offset") == str(offset) and offset in offsets_in(table)
            require(is_fresh, f"{who} loads the table as it was before commit {offset}")
    earlier = scratch.load("fresh", connections[1]).metadata.table_uuid
    scratch.drop("fresh")
    try:
        require(not scratch.load("fresh", connections[1]), "another connection loads a table that was dropped")
    except NoSuchTableError:
        scratch.create("fresh")
    is_later = scratch.load("fresh", connections[1]).metadata.table_uuid != earlier
    require(is_later, "another connection loads a table that was dropped, where there is another one of its name")
    return "two connections in turn: each saw every commit at once"


def only_what_is_expired_goes(scratch: Scratch) -> str:
    """A purge's commit: it names the snapshots that leave, and brings one of its own."""
    scratch.create("expiry")
    for offset in (1, 2, 3, 4):
        scratch.append("expiry", offset)
    before = scratch.load("expiry")
    ids = [each.snapshot_id for each in _snapshots(before)]
    scratch.append("expiry", 5, expired=ids[:2])
    after = scratch.load("expiry")
    left = [each.snapshot_id for each in _snapshots(after)]
    require(not set(left).intersection(ids[:2]), "snapshots that were expired are still there")
    require(left[:-1] == ids[2:], "snapshots are gone that nobody has expired")
    shown = offsets_in(after)
    require(shown == [1, 2, 3, 4, 5], f"after an expiry the table shows the records {shown}, not [1, 2, 3, 4, 5]")
    gone = [file for file in _paths(before) if not scratch.files.exists(file)]
    require(not gone, f"the catalog has deleted a live file: {gone[0] if gone else ''}")
    return "the snapshots that were named went, and nothing else"


def _paths(table: Table) -> list[str]:
    return [file.segment.path for files in LiveFiles().of(table).values() for file in files]


PROBES = (
    Probe(
        "snapshots",
        "every snapshot stays listed until it is expired, and can be read",
        "commits without an answer can't be found again, and a purge may delete what others still read",
        snapshots_stay,
        loses=True,
    ),
    Probe(
        "fresh reads",
        "what was committed is seen at once, by every connection",
        "cleans and appends work on what is old, and are refused again and again",
        what_was_written_is_read,
    ),
    Probe(
        "expiry",
        "a commit that expires snapshots takes those away that it names, and no file",
        "keptlog purge does not work: what was deleted stays in the storage",
        only_what_is_expired_goes,
    ),
)
