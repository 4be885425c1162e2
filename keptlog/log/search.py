"""What a search for keys asks, and what it finds: by file, whether a record of a key is in it.

    file        kind        keys are found          offsets are known
    segment     SEGMENT     yes                     yes
    watermarks  ARROW       yes                     no, a watermark has none
    maps, lists ARROW       yes                     of what has them
    manifest    MANIFEST    in bounds, if it has    no
    our JSON    METADATA    in partitions' names    no; what keptlog and Iceberg write there has no keys
    anything    UNKNOWN     not looked at

Keys are asked for by their keyed hashes alone, so bytes that nobody can divide into keys can't be searched. Then the
finding is a **problem**: the file was not looked at, or not all of it. That is neither "has it" nor "has it not".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FileKind(StrEnum):
    """What a file turned out to be, by its content."""

    SEGMENT = "segment"
    ARROW = "arrow"
    """Watermarks, or what a run staged between its jobs."""
    MANIFEST = "manifest"
    """A manifest, or a list of manifests."""
    METADATA = "metadata"
    """JSON of keptlog or of Iceberg, at a place where only these are."""
    EMPTY = "empty"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class SearchedFile:
    """A file to be looked through, or one version of it."""

    path: str
    """As ``Files.open_input`` takes it: a version of an object has its id in it."""
    size_bytes: int
    is_metadata: bool = False
    """Whether it lies where keptlog and Iceberg put their own JSON: what is JSON elsewhere is unknown."""
    is_needed: bool = False
    """Whether the table refers to it: if it is gone, nobody has deleted it for good, and somebody may put it back."""
    is_elsewhere: bool = False
    """Whether it lies outside of the topic's folder."""
    is_stray: bool = False
    """Whether it lies in the topic's folder and the table does not refer to it, or is a version of such a file: its
    offsets may never have been the log's, so that they tell nothing of when its records came."""


@dataclass(frozen=True, slots=True)
class KeyHits:
    """The records of one key in one place; offsets are inclusive, and null where the file has none."""

    key_hash: bytes
    partition: int | None
    """Null where the file does not say."""
    records: int
    lowest_offset: int | None
    highest_offset: int | None
    has_value: bool
    """Whether one of the records is no tombstone."""


@dataclass(frozen=True, slots=True)
class FileFindings:
    """What was found in one file. With a problem there may be hits too: of the part that could be read."""

    file: SearchedFile
    kind: FileKind
    hits: tuple[KeyHits, ...]
    problem: str | None = None
    """Why it was not looked at, or not all of it, and what helps; null if it was."""
    is_gone: bool = False
    """Whether it is not there: one that is needed is missing, any other was deleted since it was listed."""
    records: int = 0
    """Keys that were looked at, each as often as it occurs."""

    @property
    def is_clear(self) -> bool:
        """Whether it was looked through, and has none of the keys."""
        return not self.hits and self.problem is None and not self.is_gone
