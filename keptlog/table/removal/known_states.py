"""The states of a table that its catalog knows, and how other metadata files of the table stand to them.

    number of the file     counted    one higher with each commit: that of a file and of its base tell all
    what is in the file    else       another program has given a name without a number, and the count begins anew

A file that has the base and the time of a known one is one of two:

    its name is as whoever commits gives it, of that number, and is another one     another attempt at the same commit
    any other: the same name in another folder, one without a number, ...           a copy, or what was copied

What the oldest known one was built on has left the history, and its time may be that of many: no commit is older than
the one before, so all have one time until the clocks have caught up with one that was fast (ADR 31). So what is in the
oldest tells whether another file is a copy of it. If nobody can read it any more, a file of its time is spared like a
copy, unless something else tells that it has landed in another catalog.

Each attempt gets a name of its own. Whoever registers a copy mostly leaves it its name, or gives one without a number.
The file that was copied is a state that the catalog knows, then, and is nobody's attempt. That does not depend on
whether the table still has its snapshot: who has registered the copy goes on, and expires it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING

from keptlog.table.metadata.metadata_reading import whole_metadata
from keptlog.table.metadata.references import comparable, comparable_forms
from keptlog.table.waiting.reaching import is_out_of_reach

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

_METADATA_FILE = re.compile(r"(\d+)-[^/]*\.metadata\.json")
_WRITTEN = re.compile(r"\d+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\.gz)?\.metadata\.json")
"""As whoever commits names a file."""
_UNKNOWN_BASE = comparable("")


class MetadataStanding(Enum):
    """What a metadata file is that the catalog does not name."""

    COPIED = auto()
    """It has the state of one that the catalog names: either of the two may be a copy that somebody has registered."""
    ELSEWHERE = auto()
    """It has landed in another catalog."""
    NEXT = auto()
    """One ahead, and built on the catalog's own: nobody can tell whether it has landed anywhere."""
    LEFT = auto()
    """None of these: of an attempt of before, or older than all that the catalog names."""


@dataclass(frozen=True, slots=True)
class KnownState:
    """One that the catalog names."""

    path: str
    followed_ms: int | None
    """When the next one was made; null of the current one."""


@dataclass(frozen=True, slots=True)
class KnownStates:
    """The metadata files that a catalog knows of a table: the current one, and those in its log."""

    known: frozenset[str]
    """Where they are, in comparable form."""
    current: str
    """The newest of them."""
    numbers: tuple[int, ...] | None
    """Oldest first; null if they don't count the commits."""
    bases: Mapping[tuple[str, int], KnownState]
    """By what each was built on, and when it was made; of the oldest nobody knows the first."""
    oldest_ms: int
    oldest: Callable[[], TableMetadata | None]
    """What is in the oldest of them; null if it can't be read."""
    age: tuple[int, int]

    @classmethod
    def of(cls, table: Table) -> KnownStates:
        """Those of a table, or of a bare one."""
        log = table.metadata.metadata_log
        paths = [*(each.metadata_file for each in log), table.metadata_location]
        forms = comparable_forms(paths)
        made_ms = [*(each.timestamp_ms for each in log), table.metadata.last_updated_ms]
        built_on = [_UNKNOWN_BASE, *(forms[path] for path in paths[:-1])]
        states = [KnownState(*each) for each in zip(paths, [*made_ms[1:], None], strict=True)]
        return cls(
            frozenset(forms.values()),
            forms[table.metadata_location],
            _counted([number(path) for path in paths]),
            dict(zip(zip(built_on, made_ms, strict=True), states, strict=True)),
            made_ms[0],
            cache(partial(_read, table.io, paths[0])),
            _age(table.metadata),
        )

    def standing_of(self, path: str, metadata: TableMetadata | None, *, contradicts: bool) -> MetadataStanding:
        """How a file that is not known stands to those that are; ``metadata`` is null if it can't be read.

        One that ``contradicts`` has another snapshot under a number that the table has given.
        """
        is_copied = metadata is not None and not contradicts and self._is_copied(path, metadata)
        if is_copied and metadata and (self._is_built_alike(metadata) or self.oldest()):
            return MetadataStanding.COPIED
        if self._is_of_another(number(path), metadata):
            return MetadataStanding.ELSEWHERE
        if metadata and self._is_next(number(path), metadata):
            return MetadataStanding.NEXT
        return MetadataStanding.COPIED if is_copied else MetadataStanding.LEFT

    def state_of(self, metadata: TableMetadata) -> KnownState | None:
        """The known file of the same base and time; the oldest one, if it has what is in that, or nobody can tell."""
        base, made_ms = comparable(base_of(metadata)), metadata.last_updated_ms
        if self._is_built_alike(metadata):
            return self.bases[base, made_ms]
        oldest = None if base in self.known else self.bases.get((_UNKNOWN_BASE, made_ms))
        return oldest if oldest and self.oldest() in (None, metadata) else None

    def _is_built_alike(self, metadata: TableMetadata) -> bool:
        """Whether its time is that of a known file, and its base too, which is known."""
        base = comparable(base_of(metadata))
        return base != _UNKNOWN_BASE and (base, metadata.last_updated_ms) in self.bases

    def _is_copied(self, path: str, metadata: TableMetadata) -> bool:
        known = self.state_of(metadata)
        if known is None:
            return False
        names = {each.rpartition("/")[2] for each in (known.path, path)}
        is_tried_again = len(names) > 1 and all(map(_WRITTEN.fullmatch, names)) and number(known.path) == number(path)
        return not is_tried_again

    def is_before_all(self, found: int | None) -> bool:
        """Whether a file of this number is older than all that are known; never where numbers tell nothing."""
        return self.numbers is not None and found is not None and found < self.numbers[0]

    def _is_next(self, found: int | None, metadata: TableMetadata) -> bool:
        """Whether it may be what was to come next."""
        follows = self.numbers is not None and found == self.numbers[-1] + 1
        return follows or comparable(base_of(metadata)) == self.current

    def _is_of_another(self, found: int | None, metadata: TableMetadata | None) -> bool:
        """Whether a file that is not known has landed in another catalog; if it can't be read, its number tells."""
        is_far_ahead = self.numbers is not None and found is not None and found > self.numbers[-1] + 1
        if metadata is None:
            return is_far_ahead
        return not self._is_older(metadata) and (is_far_ahead or self._is_built_elsewhere(metadata))

    def _is_older(self, metadata: TableMetadata) -> bool:
        """Whether it was made before all that are known: its number is then one of another count."""
        return metadata.last_updated_ms < self.oldest_ms and _age(metadata)[0] <= self.age[0]

    def _is_built_elsewhere(self, metadata: TableMetadata) -> bool:
        """Whether it was built on a file that should be known, and is not."""
        base = base_of(metadata)
        counted = number(base)
        if comparable(base) in self.known:
            return False
        if self.numbers is not None and counted is not None:
            return counted >= self.numbers[0]
        if base:
            return metadata.metadata_log[-1].timestamp_ms >= self.oldest_ms
        return self.numbers is None and _age(metadata) > self.age


def _read(io: FileIO, path: str) -> TableMetadata | None:
    """A metadata file; null if nobody can read it, or not now."""
    try:
        return whole_metadata(io, path)
    except Exception as error:
        if is_out_of_reach(error):
            return None
        raise


def base_of(metadata: TableMetadata) -> str:
    """The file that a metadata file was built on; empty if it tells of none."""
    return metadata.metadata_log[-1].metadata_file if metadata.metadata_log else ""


def contradict(one: TableMetadata, other: TableMetadata) -> bool:
    """Whether two states have two snapshots under one sequence number: no table gives one twice."""
    ones = {each.sequence_number or 0: each.snapshot_id for each in one.snapshots}
    others = {each.sequence_number or 0: each.snapshot_id for each in other.snapshots}
    return any(others[each] != ones[each] for each in (ones.keys() & others.keys()) - {0})


def number(path: str) -> int | None:
    """The number in a metadata file's name; null for any other file."""
    form = _METADATA_FILE.fullmatch(path.rpartition("/")[2])
    return int(form[1]) if form else None


def _counted(numbers: Sequence[int | None]) -> tuple[int, ...] | None:
    """The same if each is greater than the one before; null if not."""
    found = tuple(each for each in numbers if each is not None)
    is_counted = len(found) == len(numbers) and all(before < after for before, after in pairwise(found))
    return found if is_counted else None


def _age(metadata: TableMetadata) -> tuple[int, int]:
    """Greater in each later state of a table."""
    # Format version 1, which another program may make, counts no sequence numbers.
    return getattr(metadata, "last_sequence_number", 0), metadata.last_updated_ms
