"""Registered readers as a topic stores them: who they are, how far they have read, and what they have missed.

    log.reader.search = {"id": "4f…", "hold_max_ms": 604800000, "added_ms": …, "missed": [], "truncations": []}
    metadata/receipts/readers/search/4f…/0-500.json     {"truncations": 0}

A registration moves in commits that make a snapshot: so a clean that was prepared before it is refused by the catalog,
looks again, and finds the new reader. A reader commits his position often, and nothing is to be decided by it at that
moment, so it takes no commit: it is the *name* of a file, which says the partition and the offset. A file that is half
written says as much as one that is whole; of several the furthest counts, so no position ever goes back, however many
write at once. The others are deleted once the new one is durable; one that can't be does no harm.

In the file stands how often the log had been truncated when it was read so far (``keptlog.log.truncations``), and
whether it is that of a first read, which has begun and may have ended anywhere. It is looked at only where the log was
ever truncated, or has lost its head. A file that does not say how often was written before the first time.

Whoever begins anew is registered anew. He gets another id, and with it another folder: what was there before, also of
an earlier topic of the same name, is not his.

What he has missed is written by the clean that removes the tombstones, in the same commit. It counts for as long as
his position is not beyond it. Files are looked at only for topics that have readers and stamped tombstones.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from keptlog.errors import LogCorrupt, first_line
from keptlog.log.erasures.erasure_deadline import holds_end_ms
from keptlog.log.given.given import whole_number
from keptlog.log.holds import Hold, Holds, valid_reader_name
from keptlog.log.segment import Log
from keptlog.log.words.counted import counted
from keptlog.log.words.iso_time import iso_time
from keptlog.table.io.files import TableFiles
from keptlog.table.io.vending import with_credentials
from keptlog.table.metadata.logs import ObservedTopic, StoredTopic, has_readers, table_location
from keptlog.table.metadata.partitions import partition_count
from keptlog.table.metadata.prefixes import READER_PREFIX
from keptlog.table.metadata.state import LogState, read_open_erasures
from keptlog.table.metadata.stored_json import from_json, from_property, require_bare, to_json
from keptlog.table.waiting.reaching import reaching
from keptlog.whole_file import is_unfinished

if TYPE_CHECKING:
    from pyiceberg.table import Table

_logger = logging.getLogger(__name__)
_FILE_NAME = re.compile(r"(0|[1-9][0-9]*)-(0|[1-9][0-9]*)\.json")


@dataclass(frozen=True, slots=True)
class MissedTombstones:
    """Tombstones of one partition that went before a reader had met them; offsets inclusive, times in ms."""

    partition: int
    first_offset: int
    last_offset: int
    tombstones: int
    """How many; 0 where nobody can tell what the records were that went."""
    first_ms: int
    """When the first of them went."""
    last_ms: int

    def told(self, where: str) -> str:
        """In words; ``where`` is the name of their log."""
        range_ = f"between offsets {self.first_offset} and {self.last_offset} of {where}"
        when = iso_time(self.first_ms) + (f" to {iso_time(self.last_ms)}" if self.last_ms > self.first_ms else "")
        these = counted(self.tombstones, "tombstone") if self.tombstones else "what may have been tombstones"
        return f"{these} {range_} went at {when}"


@dataclass(frozen=True, slots=True)
class Registration:
    """One reader of one topic; stored under these names."""

    id: str
    """Of this registration: a later one of the same name has another."""
    hold_max_ms: int
    added_ms: int
    missed: tuple[MissedTombstones, ...] = ()
    """One for each partition at most."""
    truncations: tuple[int, ...] = ()
    """How many each log had had by then, by partition; none where the list ends before."""

    def __post_init__(self) -> None:
        require_bare(self.id)

    def beginning(self, partition: int) -> ReaderPosition:
        """Where a reader stands who has committed nothing."""
        return ReaderPosition(0, self.truncations[partition] if partition < len(self.truncations) else 0)

    def missed_from(self, partition: int, position: int) -> MissedTombstones | None:
        """What a reader has missed who stands there; null if nothing."""
        for each in self.missed:
            if each.partition == partition and position <= each.last_offset:
                return replace(each, first_offset=max(each.first_offset, position))
        return None


@dataclass(frozen=True, slots=True)
class ReaderPosition:
    """How far a reader has read one log."""

    offset: int
    """The next one to be read."""
    truncations: int = 0
    """How many the log had had when it was read so far."""
    has_begun: bool = False
    """Whether records from there on may have been handed out; told of the first read of all, which begins at 0."""


@dataclass(frozen=True, slots=True)
class PositionContent:
    """What stands in the file of a position."""

    truncations: int = 0
    has_begun: bool = False


@dataclass(frozen=True, slots=True)
class ReaderPositions:
    """How far a reader has read, by partition; none where nothing was committed."""

    found: Mapping[int, ReaderPosition] = field(default_factory=dict)
    problem: str | None = None
    """Why what is stored can't be believed; then nothing is known of any partition."""

    def of(self, partition: int) -> int:
        """The next offset to be read; 0 while nobody knows."""
        known = None if self.problem else self.found.get(partition)
        return known.offset if known else 0

    def may_be_beyond(self, partition: int, offset: int) -> bool:
        """Whether somebody may have read further, as far as anybody knows."""
        return self.problem is not None or self.of(partition) > offset

    def may_have_begun(self, partition: int) -> bool:
        """Whether somebody may have said where he stands, be it at the beginning, as far as anybody knows."""
        return self.problem is not None or partition in self.found


NOWHERE = ReaderPositions()


def registrations(topic: str, properties: Mapping[str, str]) -> dict[str, Registration]:
    """The readers of a topic, by name.

    Raises:
        LogCorrupt: what is stored is something else.
    """
    names = (key.removeprefix(READER_PREFIX) for key in sorted(properties) if key.startswith(READER_PREFIX))
    return {name: _registration(topic, name, properties[READER_PREFIX + name]) for name in names}


def registration_in(topic: str, properties: Mapping[str, str], name: str) -> Registration | None:
    """One reader of a topic, whatever is stored of the others; null if there is none of this name.

    Raises:
        LogCorrupt: what is stored is something else.
    """
    text = properties.get(READER_PREFIX + name)
    return None if text is None else _registration(topic, name, text)


def _registration(topic: str, name: str, text: str) -> Registration:
    where, what = f"topic {topic}: property {READER_PREFIX}{name}", "registration of a reader"
    again = "register the reader again, which then begins with an empty state"
    try:
        require_bare(name)
        valid_reader_name(name)
    except ValueError as error:
        raise LogCorrupt(f"{where} is no {what} ({error}); remove it, and {again}").of_property() from None
    command = f"keptlog reader remove {topic} {name}"
    try:
        return from_property(Registration, text, where, what, f"remove it ({command}), and {again}")
    except LogCorrupt as error:
        raise error.mended_by(command) from None


@dataclass(frozen=True, slots=True)
class PositionFiles:
    """The positions of one topic's readers; ``location`` is that of its table."""

    files: TableFiles
    location: str

    def read(self, readers: Mapping[str, Registration], opened: Collection[int] = ()) -> dict[str, ReaderPositions]:
        """How far they have come: one listing for all, of one reader's folder for one. Who has no file stands nowhere.

        Of some partitions the files are ``opened`` too: what stands in them is not known of others.

        Raises:
            StorageUnavailable: the storage can't be reached.
        """
        with reaching(f"positions below {self._all} can't be read"):
            try:
                return self._with_contents(readers, self._listed(readers), opened)
            except FileNotFoundError:  # its reader has moved on since it was listed
                return self._with_contents(readers, self._listed(readers), opened)

    def _listed(self, readers: Mapping[str, Registration]) -> dict[str, ReaderPositions]:
        folders = {self._folder(name, each): name for name, each in readers.items()}
        found: dict[str, ReaderPositions] = dict.fromkeys(readers, NOWHERE)
        # There may be many readers, and each asks for himself.
        listed = next(iter(folders)) if len(folders) == 1 else self._all
        paths = [file.path for file in self.files.list(listed) if not is_unfinished(file.path)]
        for path in sorted(paths):
            folder, _, file_name = path.rpartition("/")
            name = folders.get(f"{folder}/")
            if name is not None:
                found[name] = _with_file(found[name], path, _FILE_NAME.fullmatch(file_name))
        return found

    def _with_contents(
        self, readers: Mapping[str, Registration], listed: Mapping[str, ReaderPositions], opened: Collection[int]
    ) -> dict[str, ReaderPositions]:
        """The same positions, with what stands in the files of some partitions; FileNotFoundError if one is gone."""
        counted: dict[str, ReaderPositions] = {}
        for name, positions in listed.items():
            found = dict(positions.found)
            for partition in found.keys() & opened:
                path = self._folder(name, readers[name]) + _file_name(partition, found[partition].offset)
                content = self._content_at(path)
                found[partition] = ReaderPosition(found[partition].offset, content.truncations, content.has_begun)
            counted[name] = replace(positions, found=found)
        return counted

    def _content_at(self, path: str) -> PositionContent:
        try:
            return from_json(PositionContent, self.files.read_bytes(path).decode(), path, "position", "")
        except (LogCorrupt, UnicodeDecodeError):
            # Too few truncations let a reader start over; with too many he would go on in another log than he has read.
            return PositionContent()

    def write(self, name: str, registration: Registration, partition: int, position: ReaderPosition) -> None:
        """Store a position durably; one that lies before what is stored changes nothing.

        Raises:
            InvalidConfig: it is no whole number.
            StorageUnavailable: the storage can't be reached.
        """
        file_name = _file_name(
            whole_number(partition, f"reader {name}: a partition"),
            whole_number(position.offset, f"reader {name}: the offset in partition {partition}"),
        )
        folder = self._folder(name, registration)
        with reaching(f"the position of reader {name} can't be stored"):
            content = to_json(PositionContent(position.truncations, position.has_begun)).encode()
            self.files.write_bytes(f"{folder}{file_name}", content)
        self._drop_lower(folder, partition)

    def _drop_lower(self, folder: str, partition: int) -> None:
        """Delete what counts no more, as far as the storage lets; the position has moved, whatever becomes of it."""
        stored: dict[int, str] = {}
        try:
            for file in self.files.list(folder):
                form = _FILE_NAME.fullmatch(file.path.rpartition("/")[2])
                if form and int(form[1]) == partition:
                    stored[int(form[2])] = file.path
            # The newest first: one that can never be deleted ends it each time, and is soon the lowest.
            for lower in sorted(stored, reverse=True)[1:]:
                self.files.delete(stored[lower])
        except OSError as error:
            _logger.info("earlier positions below %s are left for the next one: %s", folder, first_line(error))

    def forget(self, name: str, standing: Callable[[], Registration | None]) -> int:
        """Delete what is stored of a reader, but for the registration that stands; gives the number of files.

        That one is asked for after they are listed: so what was listed of another will never stand again, and who
        registers meanwhile keeps what he stores.

        Raises:
            StorageUnavailable: the storage can't be reached.
        """
        with reaching(f"the positions of reader {name} can't be deleted"):
            paths = [file.path for file in self.files.list(f"{self._all}/{name}")]
            keep = standing()
            kept = self._folder(name, keep) if keep else None
            gone = [path for path in paths if kept is None or not path.startswith(kept)]
            for path in gone:
                self.files.delete(path)
        return len(gone)

    @property
    def _all(self) -> str:
        return _all_below(self.location)

    def _folder(self, name: str, registration: Registration) -> str:
        return f"{self._all}/{name}/{registration.id}/"


def is_position(path: str, location: str) -> bool:
    """Whether a file of the topic at a location lies and is called as the positions of its readers are."""
    folder, _, name = path.rpartition("/")
    return folder.startswith(f"{_all_below(location)}/") and bool(_FILE_NAME.fullmatch(name))


def _all_below(location: str) -> str:
    return f"{location}/metadata/receipts/readers"


def _file_name(partition: int, offset: int) -> str:
    return f"{partition}-{offset}.json"


def _with_file(known: ReaderPositions, path: str, form: re.Match[str] | None) -> ReaderPositions:
    if form is None:
        return replace(known, problem=f"whose position is not known: {path} is no position; delete it")
    partition, offset = int(form[1]), int(form[2])
    before = known.found.get(partition, ReaderPosition(0))
    return replace(known, found={**known.found, partition: ReaderPosition(max(offset, before.offset))})


def with_holds(
    files: TableFiles,
    logs: Sequence[Log],
    properties: Mapping[str, str],
    metadata_location: str,
    purge_interval_ms: int,
) -> list[Log]:
    """The logs of one topic, each with what its readers hold: nothing that an erasure's deadline has no time for.

    Raises:
        LogCorrupt: a registration, or the summary of erasures, is none.
        StorageUnavailable: positions can't be read.
    """
    if not _are_held(logs, properties):
        return list(logs)
    topic = logs[0].topic_partition.topic
    readers = registrations(topic, properties)
    deadline_ms = read_open_erasures(topic, properties).earliest_deadline_ms
    erasure_end_ms = None if deadline_ms is None else holds_end_ms(logs[0].config, deadline_ms, purge_interval_ms)
    positions = PositionFiles(files, table_location(metadata_location)).read(readers)

    def holds_of(log: Log) -> Holds:
        partition = log.topic_partition.partition
        holds = (
            Hold(name, positions[name].of(partition), each.hold_max_ms, positions[name].problem)
            for name, each in readers.items()
        )
        return Holds(tuple(holds), erasure_end_ms)

    return [replace(log, holds=holds_of(log)) for log in logs]


def _are_held(logs: Sequence[Log], properties: Mapping[str, str]) -> bool:
    return has_readers(properties) and any(segment.stamped_count for log in logs for segment in log.segments)


def observed_with_holds(
    files: TableFiles, stored: StoredTopic, observed: ObservedTopic, load: Callable[[str], object]
) -> ObservedTopic:
    """The same topic, its logs with what its readers hold; raises as ``with_holds``.

    It may be known without its table. That is ``load``-ed where only then the catalog says how positions are opened.
    """
    if not _are_held(observed.logs, stored.properties):
        return observed
    interval_ms = observed.holdings.terms.purge_interval_ms

    def look() -> list[Log]:
        return with_holds(files, observed.logs, stored.properties, stored.location, interval_ms)

    location = table_location(stored.location)
    logs = with_credentials(files.properties, location, lambda: load(stored.topic), look)
    return replace(observed, logs=tuple(logs))


@dataclass(frozen=True, slots=True)
class TopicReaders:
    """What a topic's table says of its readers at one moment, and where their positions lie."""

    topic: str
    registrations: Mapping[str, Registration]
    states: Mapping[int, LogState]
    """By partition: where its log begins and ends, and was truncated."""
    files: PositionFiles
    table: Table

    @classmethod
    def of(cls, files: TableFiles, table: Table) -> TopicReaders:
        """Read it from a table.

        Raises:
            LogCorrupt: what is stored is something else.
        """
        topic, properties = table.name()[-1], table.properties
        states = {n: LogState.read(topic, n, properties) for n in range(partition_count(topic, properties))}
        return cls(topic, registrations(topic, properties), states, PositionFiles(files, table.location()), table)

    def positions(self, readers: Mapping[str, Registration]) -> dict[str, ReaderPositions]:
        """How far some of them have come; raises StorageUnavailable."""
        opened = [n for n, state in self.states.items() if state.truncations.count or state.log_start_offset]
        return self.files.read(readers, opened)
