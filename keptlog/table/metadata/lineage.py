"""Whether a table's state and its current snapshot belong together.

Files belong to a snapshot, the state (offsets, checkpoints, watermarks) to the table. Our commits move both at once,
and say in the property ``log.snapshot-id`` which snapshot the state belongs to. Whatever else moves the snapshot leaves
the state where it was:

    state of C    main A <- B <- C         own: nobody was there
    state of C    main A                   rolled back: the files of B and C are gone, their offsets are not
    state of C    main A <- B <- C <- f    foreign: f is another program's
    state of C    main A <- x              both

To go on from there would lose or revive records for good: a key that C has deleted is back in A's files, below a
checkpoint that says that they are clean. So every commit asks, and whoever judges a log asks; reading is free.

The complication is a keptlog of format 1.0 beside this one. It writes, but does not know the property:

    state of C    main A <- B <- C <- d    own: d carries the commit id that all our snapshots have
    no property   main A <- B              own: the state belongs to the newest snapshot with a commit id

Where snapshots have expired, the way down from the current one ends early. Then it is our own if no number in the
sequence is missing from the newest commit on down to there, and all of it is ours.

What can't be seen here is a change of the properties alone: it leaves no trace (ADR 27).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from keptlog.errors import Action, LogCorrupt, StalePlan
from keptlog.log.words.advice import WHOLE_BACKUP
from keptlog.log.words.counted import counted
from keptlog.log.words.iso_time import iso_time
from keptlog.log.words.next_command import next_command
from keptlog.table.metadata.columns import SPEC_ID
from keptlog.table.metadata.partitions import PARTITIONS, partition_count
from keptlog.table.metadata.state import SNAPSHOT_ID, recorded_snapshot
from keptlog.table.namespaces import NAMESPACE

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.types import NestedField

COMMIT_ID = "keptlog.commit-id"
"""Snapshot summary property: tells a change from any other, also from another one of the same run."""
_FOREIGN_SHOWN = 3
_WRITTEN = 2
"""Iceberg's newest version of its table format that PyIceberg writes; it reads newer ones."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where the current snapshot comes from, beside the one that the state belongs to."""

    topic: str
    recorded_id: int | None
    """The snapshot that the state belongs to; null if nothing of ours ever landed."""
    recorded: Snapshot | None
    """The same, unless it has expired."""
    current: Snapshot | None
    fork: Snapshot | None
    """The newest snapshot that both come from, if it is still there."""
    since: tuple[Snapshot, ...]
    """What main has behind the fork, oldest first."""
    is_own: bool
    """Whether state and current snapshot belong together."""

    @property
    def foreign(self) -> tuple[Snapshot, ...]:
        """What other programs have committed to main since."""
        return tuple(each for each in self.since if not is_ours(each))

    @property
    def own_since(self) -> tuple[Snapshot, ...]:
        """What an older keptlog has committed to main since, which did not see that it should not.

        What is older than the recorded snapshot was not: somebody has moved main to what an earlier repair has undone.
        """
        after = (self.recorded.sequence_number or 0) if self.recorded else 0
        return tuple(each for each in self.since if is_ours(each) and (each.sequence_number or 0) > after)

    def told(self) -> str:
        """What happened, in one sentence without an end; only where the two don't belong together."""
        parts = [self._moved()] if self.recorded_id is not None and self.fork_id != self.recorded_id else []
        if self.foreign:
            shown = "; ".join(describe_snapshot(each) for each in self.foreign[-_FOREIGN_SHOWN:])
            more = len(self.foreign) - _FOREIGN_SHOWN
            parts.append(f"another program changed it: {shown}" + (f"; and {more} more before" if more > 0 else ""))
        if self.own_since:
            parts.append(f"an older keptlog went on from there with {counted(len(self.own_since), 'commit')}")
        return ", and ".join(parts)

    @property
    def expired_since(self) -> int:
        """How many commits behind the recorded snapshot have expired, which may have brought records."""
        if self.recorded is None or not self.since or self.fork:
            return 0
        return max(0, (self.since[0].sequence_number or 0) - (self.recorded.sequence_number or 0) - 1)

    def way_back(self) -> str:
        """What helps where a table can't be adopted as it is, as a clause."""
        if (self.recorded or self.recorded_id is None) and not self.expired_since:
            return f"keptlog repair {self.topic} brings back what was acknowledged"
        return (
            f"no repair can bring back what was acknowledged, as snapshots expired: {WHOLE_BACKUP}, or put it right "
            "with the program that wrote it (of delete files: let it apply and remove them, as Spark's "
            "rewrite_data_files does with delete-file-threshold 1 and remove-dangling-deletes), and then take "
            f"the table as it is: keptlog repair {self.topic} --adopt"
        )

    @property
    def fork_id(self) -> int | None:
        """The fork's id, which is known longer than the fork is there."""
        if self.fork:
            return self.fork.snapshot_id
        return self.since[0].parent_snapshot_id if self.since else None

    def _moved(self) -> str:
        if self.recorded is None:
            now = f"the current one is {_named(self.current)}" if self.current else "there is no current one"
            return f"snapshot {self.recorded_id}, which its offsets belong to, has been expired, and {now}"
        if self.current is None:
            return f"it has no current snapshot any more, and its offsets belong to {_named(self.recorded)}"
        where = _named(self.fork) if self.fork else f"{_named(self.current)}, which does not come from it"
        return f"it was rolled back from {_named(self.recorded)} to {where}"


def lineage_of(table: Table) -> Lineage:
    """Compare the table's current snapshot with the one that its state belongs to.

    Raises:
        LogCorrupt: what is stored as the latter is no id.
    """
    topic = table.name()[-1]
    by_id = {snapshot.snapshot_id: snapshot for snapshot in table.metadata.snapshots}
    current = table.current_snapshot()
    chain = _chain(current, by_id)
    recorded_id = recorded_snapshot(topic, table.properties)
    if recorded_id is None:
        newest = _newest_of_ours(by_id, chain)
        recorded_id = newest.snapshot_id if newest else None
    recorded = by_id.get(recorded_id) if recorded_id is not None else None

    ancestors = {snapshot.snapshot_id for snapshot in _chain(recorded, by_id)}
    above = 0
    while above < len(chain) and chain[above].snapshot_id not in ancestors:
        above += 1
    fork = chain[above] if above < len(chain) else None
    since = tuple(reversed(chain[:above]))
    lineage = Lineage(topic, recorded_id, recorded, current, fork, since, is_own=False)
    if lineage.fork_id == recorded_id:
        is_own = all(map(is_ours, since))
    else:
        is_own = fork is None and _is_unbroken(chain, table.last_sequence_number)
    return Lineage(topic, recorded_id, recorded, current, fork, since, is_own)


def same_topic(table: Table, topic_id: str | None) -> Table:
    """The table, if it is that of a topic which was looked at before; with null nobody has looked, and any will do.

    Raises:
        StalePlan: that one was deleted meanwhile, and there is another one of its name.
    """
    if topic_id not in {None, str(table.metadata.table_uuid)}:
        what = f"topic {table.name()[-1]} was deleted and created again meanwhile"
        raise StalePlan(f"{what}; nothing was done to the new one, run it again if it is meant for that")
    return table


def require_own(table: Table) -> None:
    """Refuse to go on from a snapshot that the state does not belong to, or with other columns or a newer format.

    Raises:
        LogCorrupt: saying what happened, and what to do.
    """
    *_, namespace, name = table.name()
    if namespace == NAMESPACE and PARTITIONS not in table.properties:
        partition_count(name, table.properties)  # what is no topic has nothing to go back to
    require_written_format(table)
    require_columns(table)
    current = table.metadata.current_snapshot_id
    if current is not None and table.properties.get(SNAPSHOT_ID) == str(current):
        return  # as nearly always, and at no cost
    lineage = lineage_of(table)
    if not lineage.is_own:
        raise LogCorrupt(
            f"topic {lineage.topic} was changed by somebody else, and nothing is written to it: {lineage.told()}; "
            f"keptlog repair {lineage.topic} --dry-run shows what can be done about it"
        ).mended_by(next_command("repair", lineage.topic))


def require_written_format(table: Table) -> None:
    """Refuse a table that another program has raised to a version of Iceberg's format that can't be written here.

    Nobody can take that back at the table. What is in it can still be read.

    Raises:
        LogCorrupt: saying which version it is, and what to do.
    """
    version = getattr(table.metadata, "format_version", _WRITTEN)  # a bare table has none: it is as we make them
    if version <= _WRITTEN:
        return
    *_, namespace, name = table.name()
    what, todo = f"table {namespace}.{name}", "use a keptlog that writes it"
    if namespace == NAMESPACE:
        what = f"topic {name}"
        todo += f", or take its records to a new topic: keptlog restore {name} --to jsonl FILE writes them to a file"
        lineage = lineage_of(table)
        if not lineage.is_own and lineage.recorded:
            # No repair can be written, and what is there now may have lost records, or can't be read.
            todo += f"; before that, set its current snapshot back to {lineage.recorded_id} there ({lineage.told()})"
    error = LogCorrupt(
        f"{what}: another program has raised its table to version {version} of Iceberg's format, and this keptlog "
        f"writes version {_WRITTEN} only; nothing is written to it: {todo}"
    )
    error.action = Action.FIX_CONFIG  # no file is wrong, and there may be no keptlog to upgrade to
    raise error


def require_columns(table: Table) -> None:
    """Refuse a table whose columns or partitioning another program has changed; columns beside ours disturb nobody.

    Our files have our columns, whatever the table says: readers would not find in them what it says.

    Raises:
        LogCorrupt: saying what is different, and what to do.
    """
    metadata = table.metadata
    # Whoever changes one of them gives it another number. A bare table has none: it is as we make them.
    if not getattr(metadata, "current_schema_id", 0) and not getattr(metadata, "default_spec_id", 0):
        return
    from keptlog.table.metadata.schema import PARTITION_SPEC  # noqa: PLC0415  # it imports PyIceberg

    changed, todo = _changed_columns(table.schema()), None
    updates: list[str] = []
    if changed:
        ours = _last_of_ours(table)
        updates.append(f"SetCurrentSchemaUpdate(schema_id={ours})")
        todo = _anew(table) if ours is None else None
    if table.spec().fields != PARTITION_SPEC.fields:
        by = ", ".join(field.name for field in table.spec().fields) or "nothing"
        changed.append(f"the partitioning, which is by {by} now")
        updates.append(f"SetDefaultSpecUpdate(spec_id={SPEC_ID})")
    if SPEC_ID not in table.specs():
        # Our files are written by that number. Iceberg gives the same fields another one from then on.
        changed.append("the partition spec that it was made with (id 0), which was removed for good")
        todo = _anew(table)
    if changed:
        error = LogCorrupt(
            f"topic {table.name()[-1]}: another program changed its table: {', '.join(changed)}; nothing is written to "
            f"it: {todo or _set_back(table, updates)}"
        )
        error.action = Action.FIX_CONFIG  # no file is wrong
        raise error


def _last_of_ours(table: Table) -> int | None:
    """The last schema that has our columns, by its number; null if none has. What is beside them may be needed now."""
    from pyiceberg.schema import index_by_id  # noqa: PLC0415  # who only looks needs none of it

    # One that is made again has its old number: a higher one may bring back what was dropped before.
    now = index_by_id(table.schema()).keys()
    back = {n: len(index_by_id(it).keys() - now) for n, it in table.schemas().items() if not _changed_columns(it)}
    return min(back, key=lambda number: (back[number], -number), default=None)


def _changed_columns(schema: Schema) -> list[str]:
    """What is different in a schema from ours, each in words."""
    from pyiceberg.schema import index_by_id  # noqa: PLC0415  # who only looks needs none of it

    from keptlog.table.metadata.schema import TABLE_SCHEMA  # noqa: PLC0415  # as above

    there, ours = index_by_id(schema), index_by_id(TABLE_SCHEMA)
    name_of = {number: str(TABLE_SCHEMA.find_column_name(number)) for number in ours}
    other = [number for number, field in ours.items() if number not in there or not _is_alike(there[number], field)]
    columns = dict.fromkeys(name_of[number].partition(".")[0] for number in sorted(other))
    strict = [number for number, field in ours.items() if number in there and there[number].required > field.required]
    return [f"the column {name}" for name in columns] + [
        f"the column {name_of[number]}, which may not be null now" for number in strict
    ]


def _set_back(table: Table, updates: Sequence[str]) -> str:
    """How a table gets the schema and the partition spec again that it was made with: no SQL of an engine does it.

    No snapshot moves, and the next change goes on from there.
    """
    *_, namespace, name = table.name()
    return (
        "that alone touched no file; set the table back to what it was made with, in PyIceberg "
        f"catalog.commit_table(catalog.load_table(({namespace!r}, {name!r})), (), ({', '.join(updates)},)), with "
        "what pyiceberg.table.update has"
    )


def _anew(table: Table) -> str:
    """What to do where a table can't be set back to what it was; mostly such a topic never had a record."""
    topic = table.name()[-1]
    has_any = table.metadata.current_snapshot_id is not None
    first = f"take what it has to a file (keptlog restore {topic} --to jsonl FILE), then " if has_any else ""
    return f"{first}delete the topic ({next_command('topic delete', topic)}), and create it anew"


def _is_alike(there: NestedField, ours: NestedField) -> bool:
    """Whether a column, or a field in one, is read as ours: neither comments nor the order of fields count."""
    kind, own = there.field_type, ours.field_type
    return there.name == ours.name and (kind == own if own.is_primitive else type(kind) is type(own))


@contextmanager
def blaming(table: Table) -> Iterator[None]:
    """Around what is made of a table's files, for whoever has not required that they are its own.

    Raises:
        LogCorrupt: they contradict each other, and another program's commit has brought that about.
    """
    try:
        yield
    except LogCorrupt as error:
        if error.contradiction is None or (lineage := lineage_of(table)).is_own:
            raise
        require_written_format(table)  # no repair can be written
        raise LogCorrupt(f"{error.contradiction}: another program wrote it; {lineage.way_back()}").mended_by(
            next_command("repair", lineage.topic)
        ) from error


def is_ours(snapshot: Snapshot) -> bool:
    """Whether keptlog has made a snapshot."""
    return COMMIT_ID in summary_of(snapshot)


def summary_of(snapshot: Snapshot) -> Mapping[str, str]:
    """What a snapshot says of itself beside its operation."""
    return snapshot.summary.additional_properties if snapshot.summary else {}


def describe_snapshot(snapshot: Snapshot) -> str:
    """A snapshot for a person: which, when, what it did to how many files, and who it was as far as it says."""
    summary = summary_of(snapshot)
    operation = snapshot.summary.operation.value if snapshot.summary else "commit"
    engine = " ".join(filter(None, (summary.get("engine-name"), summary.get("engine-version"))))
    application = summary.get("spark.app.id") or summary.get("app-id")
    who = engine or ("spark" if "spark.app.id" in summary else "")
    by = (f" by {who}" if who else "") + (f" (application {application})" if application else "")
    counts = [
        f"{counted(int(summary[name]), noun)} {what}"
        for name, noun, what in (
            ("added-data-files", "file", "added"),
            ("deleted-data-files", "file", "removed"),
            ("added-delete-files", "delete file", "added"),
        )
        if summary.get(name, "0").isdecimal() and int(summary.get(name, "0"))
    ]
    return f"{_named(snapshot)}, {operation}{by}, {', '.join(counts) or 'no file changed'}"


def _named(snapshot: Snapshot | None) -> str:
    return f"snapshot {snapshot.snapshot_id} of {iso_time(snapshot.timestamp_ms)}" if snapshot else "none"


def _chain(snapshot: Snapshot | None, by_id: Mapping[int, Snapshot]) -> list[Snapshot]:
    """A snapshot and its ancestors, newest first, as far as they are still there."""
    chain: list[Snapshot] = []
    while snapshot:
        chain.append(snapshot)
        parent_id = snapshot.parent_snapshot_id
        snapshot = by_id.get(parent_id) if parent_id is not None else None
    return chain


def _newest_of_ours(by_id: Mapping[int, Snapshot], chain: Sequence[Snapshot]) -> Snapshot | None:
    """Where no property says what the state belongs to: the newest of ours, rather one that main has lost.

    What lies before the oldest of the chain proves nothing: a tag may have kept it.
    """
    on_main = {snapshot.snapshot_id for snapshot in chain}
    from_number = chain[-1].sequence_number or 0 if chain else 0
    ours = sorted(filter(is_ours, by_id.values()), key=lambda each: each.sequence_number or 0)
    lost = [each for each in ours if each.snapshot_id not in on_main and (each.sequence_number or 0) >= from_number]
    newest = lost or ours
    return newest[-1] if newest else None


def _is_unbroken(chain: Sequence[Snapshot], last_sequence_number: int) -> bool:
    """Whether the chain begins with the newest commit of all, is ours, lacks none, and was only cut by an expiry.

    The parent tells nothing of the last: PyIceberg forgets one that has expired, Java does not.
    """
    if not chain:
        return False
    numbers = [snapshot.sequence_number or 0 for snapshot in chain]
    is_dense = all(later == earlier + 1 for later, earlier in pairwise(numbers))
    return numbers[0] == last_sequence_number and is_dense and numbers[-1] > 1 and all(map(is_ours, chain))
