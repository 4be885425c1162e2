"""Probes of compare-and-swap: of many who commit on the same snapshot one lands, and the others are told.

    before     [ a ]            ten writers, each through a connection of its own, have written all but the last step
               [ a ][ 7 ]       now all at once: the seventh is told that it landed, nine are refused
    judged     what is there must be what was there, and what those have who were told that they landed

Who got no answer may have landed or not. A table without a snapshot is a case of its own: what a writer expects there
is that there is none, and there are catalogs that take this for no expectation.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Barrier, BrokenBarrierError, Thread

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.table import Table

from keptlog.errors import StorageUnavailable
from keptlog.log.words.counted import counted
from keptlog.table.doctor.catalog_probe import Probe, require
from keptlog.table.doctor.scratch import Scratch, offsets_in
from keptlog.table.waiting.reach import OUT_OF_REACH
from keptlog.table.waiting.reaching import one_line

WRITERS = 10
ROUNDS = 3
EMPTY_TABLES = 2
_PATIENCE_SECONDS = 60.0


@dataclass
class _Writer:
    """One of those who commit at once."""

    number: int
    catalog: Catalog
    offset: int = 0
    has_landed: bool = False
    """As it was told."""
    unanswered: str = ""
    """What it got instead of an answer."""
    failure: BaseException | None = None
    """Why it did not come to the commit."""

    def attempt(self, scratch: Scratch, name: str, start: Barrier) -> None:
        """Prepare, wait for the others, commit."""
        self.has_landed, self.unanswered, self.failure = False, "", None
        try:
            table = scratch.load(name, self.catalog)
            commit = scratch.change(table, self.offset, {_own(self.number): str(self.offset)}).written(table)
            start.wait()
        except BrokenBarrierError:
            return
        except BaseException as error:  # noqa: BLE001  # told by whoever waits for all
            self.failure = error
            start.abort()
            return
        try:
            commit()
            self.has_landed = True
        except (CommitFailedException, ValidationException):
            return
        except OUT_OF_REACH as error:
            self.unanswered = one_line(error)
        except BaseException as error:  # noqa: BLE001  # told by whoever waits for all
            self.failure = error


@dataclass
class _Race:
    """Writers of one table, round by round."""

    scratch: Scratch
    writers: Sequence[_Writer]
    unanswered: list[str] = field(default_factory=list)

    def go(self, name: str, first_offset: int) -> None:
        """One round.

        Raises:
            PromiseBroken: not exactly one has landed, or something is gone.
            StorageUnavailable: nobody has, and not all were told so.
        """
        before = self.scratch.load(name)
        shown = offsets_in(before)
        start = Barrier(len(self.writers), timeout=_PATIENCE_SECONDS)
        threads = []
        for writer in self.writers:
            writer.offset = first_offset + writer.number
            threads.append(Thread(target=writer.attempt, args=(self.scratch, name, start), daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for writer in self.writers:
            if writer.failure:
                raise writer.failure
        self._judge(before, shown, self.scratch.load(name))

    def _judge(self, before: Table, shown: Sequence[int], after: Table) -> None:
        told = [writer.offset for writer in self.writers if writer.has_landed]
        unanswered = [writer.unanswered for writer in self.writers if writer.unanswered]
        self.unanswered += unanswered
        now = offsets_in(after)
        where = "on an empty table" if before.current_snapshot() is None else "on one snapshot"
        lost = sorted(set(shown).difference(now))
        require(not lost, f"{counted(len(lost), 'record')} of earlier commits gone after {WRITERS} writers committed")
        vanished = sorted(set(told).difference(now))
        told_text = f"{len(told)} of {WRITERS} writers {where} were told that they had landed"
        require(not vanished, f"{told_text}, and the records of {len(vanished)} of them are not there")
        new = sorted(set(now).difference(shown))
        require(len(told) < 2 and len(new) < 2, f"{told_text}, the records of {len(new)} are there")
        if not new and unanswered:
            raise StorageUnavailable(f"no writer landed, {len(unanswered)} got no answer ({unanswered[0]})")
        require(new, f"all {WRITERS} writers {where} were refused")
        known = {each.snapshot_id for each in before.metadata.snapshots}
        came = [each for each in after.metadata.snapshots if each.snapshot_id not in known]
        require(len(came) == 1, f"one writer landed, and made {counted(len(came), 'snapshot')}")
        self._judge_properties(before.properties, after.properties, new[0])

    def _judge_properties(self, before: Mapping[str, str], after: Mapping[str, str], landed: int) -> None:
        winner = next(writer for writer in self.writers if writer.offset == landed)
        names = [_own(writer.number) for writer in self.writers]
        wanted = {name: before[name] for name in names if name in before} | {_own(winner.number): str(landed)}
        found = {name: after[name] for name in names if name in after}
        gone = sorted(name for name in wanted if wanted[name] != found.get(name))
        require(not gone, f"properties of writers that landed are gone, or are another writer's: {', '.join(gone)}")
        more = sorted(set(found).difference(wanted))
        require(not more, f"properties of writers that were refused are there: {', '.join(more)}")


def _own(number: int) -> str:
    return f"probe.writer-{number}"


def _writers(scratch: Scratch) -> list[_Writer]:
    return [_Writer(number, scratch.open_another()) for number in range(WRITERS)]


def one_of_many_lands(scratch: Scratch) -> str:
    """Ten writers on a table with a record, round by round."""
    scratch.create("race")
    scratch.append("race", 0)
    race = _Race(scratch, _writers(scratch))
    for number in range(1, ROUNDS + 1):
        race.go("race", number * 100)
    return _seen(f"{WRITERS} writers, {counted(ROUNDS, 'round')}", race)


def one_of_many_lands_first(scratch: Scratch) -> str:
    """Ten writers on a table without a snapshot, and then one more, who knew no snapshot either."""
    race = _Race(scratch, _writers(scratch))
    for number in range(EMPTY_TABLES):
        name = f"empty_{number}"
        late = scratch.change(scratch.create(name), 200).written(scratch.load(name))
        race.go(name, 100)
        _come_late(scratch, name, late)
    return _seen(f"{WRITERS} writers, {counted(EMPTY_TABLES, 'empty table')}", race)


def _come_late(scratch: Scratch, name: str, late: Callable[[], object]) -> None:
    """Commit what was written for the empty table, when it is none any more."""
    before = offsets_in(scratch.load(name))
    with contextlib.suppress(CommitFailedException, ValidationException, *OUT_OF_REACH):
        late()
    now = offsets_in(scratch.load(name))
    told = "a first commit that came after another one"
    require(set(now).issuperset(before), f"{told} was accepted, and the earlier one's records are gone")
    require(now == before, f"{told} was accepted")


def _seen(who: str, race: _Race) -> str:
    silent = f"; {len(race.unanswered)} got no answer, such as {race.unanswered[0]}" if race.unanswered else ""
    return f"{who}: one landed each time, nothing was lost{silent}"


_LOSES = "records of writers at the same time are lost: keep no topic in this catalog"
PROBES = (
    Probe(
        "compare and swap",
        "of ten commits on one snapshot exactly one lands, and no record or property is lost",
        _LOSES,
        one_of_many_lands,
        loses=True,
    ),
    Probe(
        "empty table",
        "of ten first commits on an empty table exactly one lands, and its records stay",
        _LOSES,
        one_of_many_lands_first,
        loses=True,
    ),
)
