"""How topics stood at the last look, put aside beside what their tables said (``keptlog.table.reading.cache``).

To judge a home of a hundred thousand logs takes seconds each time, and hardly one of them has changed. So a topic's
numbers are kept in a file, in three lines, of which mostly the first and the last are read:

    how the topic stands: until when that is good, its tally, its worst log, what it holds
    each of its logs
    the names and sizes of its live files; whether they are there, only the storage tells

They are good at the metadata location and under the broker settings for which they were made, from the time at which
they were until their term ends, and for the very code that made them: another keptlog may judge otherwise. Else they
count as none, as what is damaged does. So they do where a file that says what the table holds is lost or cut off
(``metadata_files``). Topics with registered readers are not among them, because readers move without a commit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from keptlog.errors import KeptlogError
from keptlog.foreign_json import json_value
from keptlog.log.erasures.open_erasures import OpenErasures
from keptlog.log.holder import Holdings, Terms
from keptlog.log.told.metrics import Tally
from keptlog.log.told.standing import LogStanding, Term
from keptlog.log.told.stored_files import FilesOnDisk
from keptlog.log.told.topic_standing import TopicStanding
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.uncleanable import Uncleanable
from keptlog.resident.likeness import code_likeness
from keptlog.table.metadata.metadata_files import MetadataFiles, are_whole
from keptlog.table.metadata.stored_json import from_json
from keptlog.table.reading.cache import STANDING, TopicCache, held_as_lists, held_of_lists


@dataclass
class StandingCache:
    """The standings in one home, under these broker settings."""

    cache: TopicCache
    broker_settings: Mapping[str, str]

    def get(self, topic: str, location: str, now_ms: int) -> TopicStanding | None:
        """How a topic stands at a time, if it is known for this metadata location."""
        try:
            text = self.cache.read(topic, STANDING)
            if text is None or self._made_by is None:
                return None
            head, rows, files = text.split(b"\n")
            known = json_value(head)
            term = Term(*known["term"])
            if [known["made_by"], known["location"]] != [self._made_by, location] or not term.has(now_ms):
                return None
            if not are_whole(known["metadata_files"]):
                return None
            return _standing(topic, known, term, (rows, files))
        except (OSError, ValueError, LookupError, TypeError, KeptlogError):
            return None

    def put(self, topic: str, standing: TopicStanding, said_by: MetadataFiles) -> None:
        """Remember it, and what says it, instead of what was known of the topic. If it can't be written, it is not."""
        if self._made_by is not None:
            lines = [json.dumps(each, separators=(",", ":")) for each in _lines(self._made_by, standing, said_by)]
            self.cache.write(topic, STANDING, "\n".join(lines).encode())

    @cached_property
    def _made_by(self) -> str | None:
        """What decides besides the topic's metadata and the time; null if that can't be told."""
        try:
            decides = [code_likeness(), sorted(self.broker_settings.items())]
        except OSError:
            return None
        return sha256(json.dumps(decides).encode()).hexdigest()


def _lines(made_by: str, standing: TopicStanding, said_by: MetadataFiles) -> list[Any]:
    holdings, files = standing.holdings, standing.files()
    head = {
        "made_by": made_by,
        "location": standing.location,
        "metadata_files": said_by,
        "term": [standing.term.from_ms, standing.term.until_ms],
        "logs": standing.logs,
        "worst": standing.worst and _row(standing.worst),
        "tally": standing.tally,
        "is_compacted": standing.is_compacted,
        "terms": astuple(holdings.terms),
        "held": held_as_lists(holdings.held),
        "erasures": json.dumps(asdict(standing.erasures)) if standing.erasures != OpenErasures() else None,
    }
    rows = [_row(each) for each in standing.standings()]
    return [head, rows, files and [files.folder, files.names, files.sizes]]


def _standing(topic: str, head: Mapping[str, Any], term: Term, lines: tuple[bytes, bytes]) -> TopicStanding:
    rows, files = lines
    text = head["erasures"]
    erasures = from_json(OpenErasures, text, topic, "summary of erasures", "") if text else OpenErasures()
    return TopicStanding(
        location=head["location"],
        term=term,
        logs=head["logs"],
        worst=head["worst"] and _of_row(topic, head["worst"]),
        standings=lambda: [_of_row(topic, row) for row in json_value(rows)],
        tally=Tally(*head["tally"]),
        is_compacted=head["is_compacted"],
        holdings=Holdings(topic, Terms(*head["terms"]), held_of_lists(head["held"])),
        erasures=erasures,
        files=lambda: None if (known := json_value(files)) is None else FilesOnDisk(*known),
    )


def _row(standing: LogStanding) -> list[Any]:
    """Its numbers in their order; the topic is known."""
    name, *numbers, mark, tally = standing
    return [name.partition, *numbers, mark and astuple(mark), tally]


def _of_row(topic: str, row: Sequence[Any]) -> LogStanding:
    partition, *numbers, mark, tally = row
    return LogStanding._make([TopicPartition(topic, partition), *numbers, mark and Uncleanable(*mark), Tally(*tally)])
