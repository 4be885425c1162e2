"""What a topic's table remembers beside its files, as table properties.

keptlog.format-version            which format all this is in (``keptlog.table.metadata.format``)
log.partitions                    how many partitions the topic has
log.snapshot-id                   the snapshot that all of this belongs to (``lineage``); absent in
                                  topics of format 1.0 and until the first commit
log.p<N>.log-start-offset         the first offset that readers see
log.source                        where the records come from, as JSON; absent if they are appended (ADR 23)
log.p<N>.log-end-offset           the next offset, and with a source the position there; never derived from the files:
                                  the last record may be cleaned away; absent until the first append or ingest
log.p<N>.leader-epoch             the leader epoch that the source had when the log end was reached, as JSON (ADR 33);
                                  absent where nobody knows
log.p<N>.as-of                    when a log lacked nothing of its source, as JSON (ADR 61); absent where nobody knows
log.p<N>.ingest-stopped           why an ingest stopped at the log, as JSON (ADR 79); absent or empty if it did
                                  not, and of no use once the log has moved
log.p<N>.first-dirty-offset       the cleaner's checkpoint; absent until the first clean
log.p<N>.cleaning-to              where a clean in legs ends that has begun and is not over (ADR 47), or a checkpoint,
                                  one that a repair gave up (ADR 27): what lies below is closed, and not as appended;
                                  else absent, not above the checkpoint, or empty: segments may be given up behind it
log.p<N>.nothing-given-up         "true" if no adoption has set that (``adoption_doubt``); else absent or empty
log.p<N>.truncations              where a log that was truncated ended after that, as JSON; absent until the first time
                                  (``keptlog.log.truncations``)
log.p<N>.watermarks               the file with the watermarks of deleted keys; absent or empty if there are none
log.p<N>.last-pass                what the last clean cost, as JSON; absent until the first clean
log.p<N>.uncleanable              why the last clean failed, as JSON; absent or empty if it did not
log.erasures                      the file with the erasures that were asked for, as JSON; absent if there never was one
log.erasures.open                 how many of them are open, and what is next, as JSON (``erasures``)
log.condemned                     journals of a sweep that is under way, as JSON; absent if there are none (ADR 28)
log.undone                        which snapshots adoptions left aside, as JSON; absent if none did (``runs``, ADR 29)
log.reader.<name>                 a registered reader, as JSON: how long tombstones wait for it, and which it has missed
                                  (``keptlog.table.reading.readers``, ADR 38)
kafka.<name>                      the topic's own configuration, with Kafka's names; and, of what decides over deletion
                                  (``DECIDING``), what the broker settings said when the topic was made or altered
log.default.<name>                the same value, if it is not the topic's own; absent in topics of 1.0 (ADR 30)
comment                           what the topic is, for people; the name under which engines keep a table's comment
keptlog.owners                    whose it is, separated by commas (ADR 49)

All but marks, stops, last passes, settings, and what is told to people move only in commits that make a snapshot, and
so by compare-and-swap (ADR 1). Journals become condemned in such a commit as well; one that is gone is taken off the
list by any. Properties that are not in this list may be a newer keptlog's, and are left alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from keptlog.errors import LogCorrupt
from keptlog.foreign_json import json_value
from keptlog.log.cut_off import Kept
from keptlog.log.declared import About
from keptlog.log.erasures.open_erasures import OpenErasures
from keptlog.log.sections import known_cleaned_to
from keptlog.log.source import SourceIdentity, StoredSource
from keptlog.log.stopped_ingest import StoppedIngest
from keptlog.log.told.metrics import LastPass
from keptlog.log.truncations import NO_TRUNCATIONS, Truncations
from keptlog.log.uncleanable import Uncleanable
from keptlog.log.words.next_command import next_command
from keptlog.table.metadata.format import SET_IT_BACK
from keptlog.table.metadata.partitions import LONGEST_SHOWN, is_long, partition_count
from keptlog.table.metadata.reached import ReachedEpoch, ReachedTime
from keptlog.table.metadata.stored_json import from_property, to_json

SNAPSHOT_ID = "log.snapshot-id"
SOURCE = "log.source"
CONDEMNED = "log.condemned"
UNDONE = "log.undone"
ERASURES = "log.erasures"
OPEN_ERASURES = "log.erasures.open"
_T = TypeVar("_T")
COMMENT = "comment"
OWNERS = "keptlog.owners"


def first_dirty_offset(partition: int) -> str:
    """Name of the checkpoint's property."""
    return f"log.p{partition}.first-dirty-offset"


def cleaning_to(partition: int) -> str:
    """Name of the property that says how far cleans have begun, beyond the checkpoint."""
    return f"log.p{partition}.cleaning-to"


def log_start_offset(partition: int) -> str:
    """Name of the log start offset's property."""
    return f"log.p{partition}.log-start-offset"


def log_end_offset(partition: int) -> str:
    """Name of the log end offset's property."""
    return f"log.p{partition}.log-end-offset"


def leader_epoch(partition: int) -> str:
    """Name of the leader epoch's property."""
    return f"log.p{partition}.leader-epoch"


def as_of(partition: int) -> str:
    """Name of the property that says when a log lacked nothing of its source."""
    return f"log.p{partition}.as-of"


def ingest_stopped(partition: int) -> str:
    """Name of the property that says why an ingest left a log alone."""
    return f"log.p{partition}.ingest-stopped"


def truncations(partition: int) -> str:
    """Name of the property that says where a log was truncated."""
    return f"log.p{partition}.truncations"


def watermarks(partition: int) -> str:
    """Name of the property that says where the watermarks lie."""
    return f"log.p{partition}.watermarks"


def last_pass(partition: int) -> str:
    """Name of the last clean's property."""
    return f"log.p{partition}.last-pass"


def uncleanable(partition: int) -> str:
    """Name of the mark's property."""
    return f"log.p{partition}.uncleanable"


@dataclass(frozen=True, slots=True)
class _Property(Generic[_T]):
    """What a property holds as JSON, and what its error says that it is, and what to do."""

    kind: type[_T]
    what: str
    remedy: str
    is_note: bool = False
    """Whether it is no part of the log, so that a repair writes it anew (``keptlog.table.changes.notes``)."""

    def read(self, topic: str, properties: Mapping[str, str], name: str) -> _T | None:
        """Its value; null if it is absent or empty.

        Raises:
            LogCorrupt: what is stored is something else.
        """
        text = properties.get(name)
        if not text:
            return None
        command = next_command("repair", topic)
        remedy = f"{self.remedy} ({command} does that)" if self.is_note else self.remedy
        try:
            return from_property(self.kind, text, f"topic {topic}: property {name}", self.what, remedy)
        except LogCorrupt as error:
            raise (error.mended_by(command) if self.is_note else error) from None


_EPOCH = _Property(ReachedEpoch, "leader epoch", "remove it, and the source is believed to be whole", is_note=True)
_TIME = _Property(
    ReachedTime, "time of a position", "remove it, and it is not known whether deletions were missed", is_note=True
)
_STOP = _Property(StoppedIngest, "note of a stopped ingest", "remove it, and the next ingest tells", is_note=True)
_CONDEMNED = _Property(tuple[str, ...], "list of journals", "write it anew", is_note=True)
_TRUNCATIONS = _Property(Truncations, "list of truncations", SET_IT_BACK)
_MARK = _Property(Uncleanable, "mark of a failed clean", "remove it, and the log is tried again", is_note=True)
_LAST_PASS = _Property(LastPass, "record of a clean", "remove it", is_note=True)
_OPEN_ERASURES = _Property(OpenErasures, "summary of erasures", "write it anew", is_note=True)


@dataclass(frozen=True, slots=True)
class LogState:
    """The stored state of one topic-partition. ``log_end_offset`` is exclusive; no checkpoint means never cleaned."""

    log_start_offset: int
    log_end_offset: int
    checkpoint: int | None
    watermarks_path: str | None = None
    uncleanable: Uncleanable | None = None
    cleaning_to: int | None = None
    truncations: Truncations = NO_TRUNCATIONS

    @classmethod
    def read(cls, topic: str, partition: int, properties: Mapping[str, str]) -> LogState:
        """Read it from a table's properties; a new partition is empty and starts at 0.

        Raises:
            LogCorrupt: a value is no number, no mark, or no list of truncations; or the log ends before it starts.
        """
        start = _number(topic, properties, log_start_offset(partition)) or 0
        end = _number(topic, properties, log_end_offset(partition)) or 0
        if start > end:
            # All that is there would be taken for deleted, and go.
            name = log_start_offset(partition)
            told = f"topic {topic}: property {name}={start} lies behind the end of the log, {end}; {SET_IT_BACK}"
            raise LogCorrupt(told).of_property()
        return cls(
            start,
            end,
            _number(topic, properties, first_dirty_offset(partition)),
            properties.get(watermarks(partition)) or None,
            _MARK.read(topic, properties, uncleanable(partition)),
            _number(topic, properties, cleaning_to(partition)) if properties.get(cleaning_to(partition)) else None,
            _TRUNCATIONS.read(topic, properties, truncations(partition)) or NO_TRUNCATIONS,
        )


def truncation_counts(topic: str, properties: Mapping[str, str]) -> tuple[int, ...]:
    """How many truncations each log has had, by partition, up to the last one that had any.

    Raises:
        LogCorrupt: what is stored is something else.
    """
    numbers = range(partition_count(topic, properties))
    counts = [LogState.read(topic, number, properties).truncations.count for number in numbers]
    while counts and not counts[-1]:
        counts.pop()
    return tuple(counts)


def read_last_pass(topic: str, partition: int, properties: Mapping[str, str]) -> LastPass | None:
    """What the last clean of a log cost; null if it was never cleaned.

    Raises:
        LogCorrupt: what is stored is something else.
    """
    return _LAST_PASS.read(topic, properties, last_pass(partition))


def read_stopped_ingest(topic: str, partition: int, properties: Mapping[str, str]) -> StoppedIngest | None:
    """Why an ingest left a log alone, be it still so or not; null if none did.

    Raises:
        LogCorrupt: what is stored is something else.
    """
    return _STOP.read(topic, properties, ingest_stopped(partition))


def read_open_erasures(topic: str, properties: Mapping[str, str]) -> OpenErasures:
    """The summary of a topic's erasures, of which no file has to be read.

    Raises:
        LogCorrupt: what is stored is something else.
    """
    return _OPEN_ERASURES.read(topic, properties, OPEN_ERASURES) or OpenErasures()


def remembers_erasures(topic: str, properties: Mapping[str, str]) -> bool:
    """Whether there is a file with a topic's erasures, be its name there or taken away."""
    return ERASURES in properties or lacks_register(topic, properties)


def lacks_register(topic: str, properties: Mapping[str, str]) -> bool:
    """Whether a table counts erasures and does not say where they are: keptlog writes both, or none."""
    if ERASURES in properties:
        return False
    try:
        counted = read_open_erasures(topic, properties)
    except LogCorrupt:  # a damaged note, and told as that
        return False
    return bool(counted.count or counted.ended_count)


def read_condemned(topic: str, properties: Mapping[str, str]) -> tuple[str, ...]:
    """The file names of the journals that a table calls condemned; some of them may be gone.

    Raises:
        LogCorrupt: what is stored is something else.
    """
    return _CONDEMNED.read(topic, properties, CONDEMNED) or ()


def damaged_notes(topic: str, properties: Mapping[str, str]) -> dict[str, LogCorrupt]:
    """Which properties that are no part of the log say nothing that can be read, and why.

    Raises:
        LogCorrupt: nobody can tell how many logs there are.
    """
    numbers = range(partition_count(topic, properties))
    notes: list[tuple[str, _Property[Any]]] = [(OPEN_ERASURES, _OPEN_ERASURES), (CONDEMNED, _CONDEMNED)]
    for number in numbers:
        notes += [(last_pass(number), _LAST_PASS), (uncleanable(number), _MARK)]
        notes += [(leader_epoch(number), _EPOCH), (as_of(number), _TIME)]
        notes += [(ingest_stopped(number), _STOP)]
    found: dict[str, LogCorrupt] = {}
    try:
        recorded_snapshot(topic, properties)
    except LogCorrupt as error:
        found[SNAPSHOT_ID] = error
    for name, note in notes:
        try:
            note.read(topic, properties, name)
        except LogCorrupt as error:
            found[name] = error
    return found


def source_to_json(source: SourceIdentity, before: str | None) -> str:
    """As it is stored; ``before`` is what was stored until now, of which fields that are not known here stay."""
    return json.dumps(json_value(before or "{}") | json_value(to_json(source)), separators=(",", ":"))


def read_source(topic: str, properties: Mapping[str, str]) -> StoredSource:
    """Where a topic's records come from, and the positions there.

    Raises:
        LogCorrupt: what is stored is something else.
    """
    positions = read_positions(topic, properties)
    numbers = range(len(positions))
    source = read_source_identity(topic, properties.get(SOURCE))
    if source is None:
        return StoredSource(None, positions)
    reached = {number: _EPOCH.read(topic, properties, leader_epoch(number)) for number in numbers}
    # An older keptlog moves the log end and leaves the epoch and the time as they were.
    epochs = {n: each.leader_epoch for n, each in reached.items() if each and each.end_offset == positions[n]}
    of_then = {number: _TIME.read(topic, properties, as_of(number)) for number in numbers}
    times = {n: each for n, each in of_then.items() if each and each.end_offset == positions[n]}
    as_of_ms = {number: each.as_of_ms for number, each in times.items()}
    compacted = frozenset(number for number, each in times.items() if each.is_compacted)
    truncated = {number: _TRUNCATIONS.read(topic, properties, truncations(number)) for number in numbers}
    counts = {number: each.count for number, each in truncated.items() if each}
    return StoredSource(source, positions, epochs, as_of_ms, counts, compacted, _kept(topic, properties))


def _kept(topic: str, properties: Mapping[str, str]) -> Kept:
    below: dict[int, int] = {}
    for number in range(partition_count(topic, properties)):
        with suppress(LogCorrupt):  # it is told by whoever needs it
            log = LogState.read(topic, number, properties)
            cleaned_to = known_cleaned_to(log.checkpoint, log.cleaning_to, log.log_end_offset)
            below[number] = max(log.log_start_offset, cleaned_to)
    return Kept(remembers_erasures(topic, properties), {number: each for number, each in below.items() if each})


def read_positions(topic: str, properties: Mapping[str, str]) -> tuple[int | None, ...]:
    """The next offset at the source, by partition; null where nothing was ever read. Raises as ``read_source``."""
    numbers = range(partition_count(topic, properties))
    return tuple(_number(topic, properties, log_end_offset(number)) for number in numbers)


def read_source_identity(topic: str, text: str | None) -> SourceIdentity | None:
    """Where a topic's records come from, as its property says; null if it has none.

    Raises:
        LogCorrupt: what is stored is something else.
    """
    if text is None:
        return None
    return from_property(SourceIdentity, text, f"topic {topic}: property {SOURCE}", "source", SET_IT_BACK)


def read_about(properties: Mapping[str, str]) -> About:
    """What is told of a topic to people; whoever may set a table's comment may set it too."""
    owners = (each.strip() for each in properties.get(OWNERS, "").split(","))
    return About(properties.get(COMMENT, "").strip() or None, tuple(each for each in owners if each))


def about_properties(about: About) -> dict[str, str]:
    """The same as it is stored; what is not told has no property."""
    stored = {COMMENT: about.description or "", OWNERS: ",".join(about.owners)}
    return {name: text for name, text in stored.items() if text}


def recorded_snapshot(topic: str, properties: Mapping[str, str]) -> int | None:
    """The id of the snapshot that the state belongs to; null if nothing says so.

    Raises:
        LogCorrupt: what is stored is no id.
    """
    text = properties.get(SNAPSHOT_ID)
    if text is None:
        return None
    if not is_long(text):
        command = next_command("repair", topic)
        told = f"remove it, and the newest snapshot that keptlog has made takes its place ({command} does that)"
        error = LogCorrupt(
            f"topic {topic}: property {SNAPSHOT_ID}={text[:LONGEST_SHOWN]!r} is no snapshot's id; {told}"
        )
        raise error.of_property().mended_by(command)
    return int(text)


def watermarks_paths(properties: Mapping[str, str]) -> list[str]:
    """The files with watermarks of all topic-partitions."""
    name = re.compile(r"log\.p\d+\.watermarks")
    return [path for key, path in properties.items() if name.fullmatch(key) and path]


def _number(topic: str, properties: Mapping[str, str], name: str) -> int | None:
    text = properties.get(name)
    if text is None:
        return None
    if not is_long(text):
        shown = repr(text[:LONGEST_SHOWN])
        raise LogCorrupt(f"topic {topic}: property {name}={shown} is no offset; {SET_IT_BACK}").of_property()
    return int(text)
