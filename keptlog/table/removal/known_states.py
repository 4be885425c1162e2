"""The states of a table that its catalog knows, and how other metadata files of the table stand to them.

    number of the file     counted    one higher with each commit: that of a file and of its base tell all
    what is in the file    else       another program has given a name without a number, and the count begins anew

A file without a number is mostly the copy of one, which somebody has registered. The file that was copied bears another
name then, and has the same base and the same time: it is a state that the catalog knows, and is nobody's attempt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from keptlog.table.metadata.references import comparable, comparable_forms

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

_METADATA_FILE = re.compile(r"(\d+)-[^/]*\.metadata\.json")
_WRITTEN = re.compile(r"\d+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.metadata\.json")
"""As whoever commits names a file."""


@dataclass(frozen=True, slots=True)
class KnownStates:
    """The metadata files that a catalog knows of a table: the current one, and those in its log."""

    known: frozenset[str]
    """Where they are, in comparable form."""
    current: str
    """The newest of them."""
    numbers: tuple[int, ...] | None
    """Oldest first; null if they don't count the commits."""
    bases: Mapping[tuple[str, int], str]
    """By what each was built on, and when it was made, where it is."""
    oldest_ms: int
    age: tuple[int, int]
    snapshots: frozenset[int | None]
    """Those that the table has, and null for a table without any."""

    @classmethod
    def of(cls, table: Table) -> KnownStates:
        """Those of a table, or of a bare one."""
        log = table.metadata.metadata_log
        paths = [*(each.metadata_file for each in log), table.metadata_location]
        forms = comparable_forms(paths)
        made_ms = [*(each.timestamp_ms for each in log), table.metadata.last_updated_ms]
        built_on = [comparable(""), *(forms[path] for path in paths[:-1])]
        return cls(
            frozenset(forms.values()),
            forms[table.metadata_location],
            _counted([number(path) for path in paths]),
            dict(zip(zip(built_on, made_ms, strict=True), paths, strict=True)),
            made_ms[0],
            _age(table.metadata),
            frozenset((None, *(each.snapshot_id for each in table.metadata.snapshots))),
        )

    def has_state_of(self, path: str, metadata: TableMetadata) -> bool:
        """Whether a file that is not known has what a known one has, and is not an attempt at the same commit.

        A commit that is tried again has the base and the time of before, mostly with another snapshot. One that the
        table does not have any more tells nothing; then it counts as such an attempt. So does another name that
        whoever commits gives, if both have one and count alike. A copy in another folder mostly bears the same one.
        """
        known = self.bases.get((comparable(base_of(metadata)), metadata.last_updated_ms))
        if known is None or metadata.current_snapshot_id not in self.snapshots:
            return False
        names = {each.rpartition("/")[2] for each in (known, path)}
        is_tried_again = len(names) == 2 and all(map(_WRITTEN.fullmatch, names)) and number(known) == number(path)
        return not is_tried_again

    def is_before_all(self, found: int | None) -> bool:
        """Whether a file of this number is older than all that are known; never where numbers tell nothing."""
        return self.numbers is not None and found is not None and found < self.numbers[0]

    def is_next(self, found: int | None, metadata: TableMetadata) -> bool:
        """Whether it may be what was to come next."""
        follows = self.numbers is not None and found == self.numbers[-1] + 1
        return follows or comparable(base_of(metadata)) == self.current

    def is_of_another(self, found: int | None, metadata: TableMetadata | None) -> bool:
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


def base_of(metadata: TableMetadata) -> str:
    """The file that a metadata file was built on; empty if it tells of none."""
    return metadata.metadata_log[-1].metadata_file if metadata.metadata_log else ""


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
