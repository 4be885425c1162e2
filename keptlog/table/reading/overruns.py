"""What readers miss who were too slow: the commit that takes the tombstones out writes it into their registrations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from keptlog.log.result import RewriteResult
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.prefixes import READER_PREFIX
from keptlog.table.metadata.stored_json import to_json
from keptlog.table.reading.readers import MissedTombstones, PositionFiles, Registration, registrations

if TYPE_CHECKING:
    from pyiceberg.table import Table


def told_of_overruns(table: Table, files: TableFiles, outcomes: Iterable[RewriteResult]) -> dict[str, str]:
    """What a commit writes into the registrations of those who miss tombstones that go with it.

    Who has read on since it was planned, or has come since, is asked where he stands now.

    Raises:
        LogCorrupt, StorageUnavailable: as for ``with_holds``.
    """
    overrun = [outcome for outcome in outcomes if outcome.overrun]
    readers = registrations(table.name()[-1], table.properties) if overrun else {}
    if not readers:
        return {}
    positions = PositionFiles(files, table.location()).read(readers)
    changed: dict[str, Registration] = {}
    for outcome in overrun:
        partition = outcome.step.topic_partition.partition
        for name, registration in readers.items():
            behind = [each for each in outcome.overrun if positions[name].of(partition) <= each.last_offset]
            if behind:
                gone = MissedTombstones(
                    partition,
                    behind[0].first_offset,
                    behind[-1].last_offset,
                    sum(each.tombstones for each in behind),
                    outcome.step.now_ms,
                    outcome.step.now_ms,
                )
                changed[name] = _with_missed(changed.get(name, registration), gone)
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
