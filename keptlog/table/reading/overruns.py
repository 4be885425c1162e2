"""What readers miss who were too slow: the commit that takes the tombstones out writes it into their registrations.

A clean does so, and an adoption, which gives up what another program has taken out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from keptlog.errors import LogCorrupt
from keptlog.log.result import RewriteResult
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.prefixes import READER_PREFIX
from keptlog.table.metadata.stored_json import to_json
from keptlog.table.reading.readers import (
    MissedTombstones,
    PositionFiles,
    Registration,
    registration_in,
    registrations,
)

if TYPE_CHECKING:
    from pyiceberg.table import Table


def told_of_overruns(table: Table, files: TableFiles, outcomes: Iterable[RewriteResult]) -> dict[str, str]:
    """What a commit writes into the registrations of those who miss tombstones that go with it.

    Who has read on since it was planned, or has come since, is asked where he stands now.

    Raises:
        LogCorrupt, StorageUnavailable: as for ``with_holds``.
    """
    gone = [
        MissedTombstones(
            outcome.step.topic_partition.partition,
            each.first_offset,
            each.last_offset,
            each.tombstones,
            outcome.step.now_ms,
            outcome.step.now_ms,
        )
        for outcome in outcomes
        for each in outcome.overrun
    ]
    return _told(table, files, registrations(table.name()[-1], table.properties), gone) if gone else {}


def told_of_given_up(table: Table, files: TableFiles, gone: Iterable[MissedTombstones]) -> dict[str, str]:
    """The same of what an adoption gives up; a registration that can't be read is left, and tells its reader itself.

    Raises:
        StorageUnavailable: positions can't be read.
    """
    readers: dict[str, Registration] = {}
    for name in (key.removeprefix(READER_PREFIX) for key in table.properties if key.startswith(READER_PREFIX)):
        with suppress(LogCorrupt):  # nobody could remove it before the adoption
            found = registration_in(table.name()[-1], table.properties, name)
            readers |= {name: found} if found else {}
    return _told(table, files, readers, gone)


def _told(
    table: Table, files: TableFiles, readers: Mapping[str, Registration], gone: Iterable[MissedTombstones]
) -> dict[str, str]:
    if not readers:
        return {}
    positions = PositionFiles(files, table.location()).read(readers)
    changed: dict[str, Registration] = {}
    for each in gone:
        for name, registration in readers.items():
            if positions[name].of(each.partition) <= each.last_offset:
                changed[name] = _with_missed(changed.get(name, registration), each)
    return {READER_PREFIX + name: to_json(each) for name, each in changed.items()}


def _with_missed(registration: Registration, gone: MissedTombstones) -> Registration:
    before = [each for each in registration.missed if each.partition == gone.partition]
    others = tuple(each for each in registration.missed if each.partition != gone.partition)
    for each in before:
        gone = MissedTombstones(
            gone.partition,
            min(each.first_offset, gone.first_offset),
            max(each.last_offset, gone.last_offset),
            each.tombstones + gone.tombstones,
            min(each.first_ms, gone.first_ms),
            max(each.last_ms, gone.last_ms),
        )
    return replace(registration, missed=(*others, gone))
