"""Processes that append, erase, clean, purge and verify on one home at once, until somebody kills them.

A batch holds one *person*, whose key and value no other record has, among records of few keys. Whoever erases takes a
batch that was acknowledged, and asks for its person under an id made of the batch's number: so two workers may ask for
the same at once, and a worker again for what a killed one has begun.

What is begun and what was acknowledged stands in journals (``tests.crash.traffic``), so that in the end it is known
what must be there once: every batch that was begun, and one tombstone for each request.
"""

from __future__ import annotations

import traceback
from dataclasses import replace
from pathlib import Path
from random import Random

from keptlog.errors import CommitStateUnknown, KeptlogError, StalePlan, StorageUnavailable
from keptlog.home import Home, new_id, open_home
from keptlog.log.record import NewRecord
from keptlog.passes.clean import Cleaner
from keptlog.passes.erasures.erase import Eraser
from keptlog.passes.erasures.erasure_request import ErasureList, ErasureRequest
from keptlog.passes.purge import Purger
from tests.crash.traffic import GRACE_MS, Journal, journals_in
from tests.crash.workload import TOPIC, batch, wall_clock_ms
from tests.in_process import in_process_engine
from tests.logs import carry_out

MAY_HAPPEN = (StalePlan, CommitStateUnknown, StorageUnavailable)
"""What a worker meets because others work on the same topic, or have died there."""
_BATCHES_OF_A_WORKER = 10**6


def person(number: int) -> bytes:
    """The key of the person in a batch."""
    return b"person-%d@example.org" % number


def secret(number: int) -> bytes:
    """What is known of that person."""
    return b"secret of person %d, all of it" % number


def batch_with_person(number: int) -> list[NewRecord]:
    """A batch's records, the person's among them."""
    records = batch(number)
    records.insert(number % len(records), NewRecord(person(number), secret(number), 1_700_000_000_000 + number))
    return records


BATCH_RECORDS = len(batch_with_person(0))


def request_id(number: int) -> str:
    """Of the request to erase the person of a batch."""
    return f"erase-{number}"


def eraser_of(home: Home) -> Eraser:
    """The home's own, but for Spark."""
    return replace(home.eraser, engine=in_process_engine(home.store.files))


def work_until_killed(home: Path, folder: Path, worker: int, seed: str) -> None:
    """Do what the dice say, for ever; what a worker may not meet ends it, and stands in its journal."""
    journal, chance = Journal(folder / f"worker-{worker}"), Random(seed)
    try:
        opened = open_home(home, {})
        journal.say("ready", worker)
        while True:
            try:
                _do_something(opened, journal, worker, chance)
            except MAY_HAPPEN as error:
                journal.say("refused", " ".join(f"{type(error).__name__}: {error}".split()))
    except BaseException:
        journal.say("broken", traceback.format_exc().replace("\n", " | "))
        raise


def said_by_all(folder: Path, word: str) -> list[int]:
    """The numbers that workers have said after a word, each once, sorted."""
    return sorted({number for journal in journals_in(folder) for number in journal.batches(word)})


def _do_something(home: Home, journal: Journal, worker: int, chance: Random) -> None:
    acked = said_by_all(journal.path.parent, "acked")
    doing = {"append": 3, "erase": 3 if acked else 0, "clean": 2, "purge": 2, "verify": 3, "list": 1}
    what = chance.choices(list(doing), list(doing.values()))[0]
    if what == "append":
        number = worker * _BATCHES_OF_A_WORKER + len(journal.batches("began"))
        append(home, journal, number)
    elif what == "erase":
        erase(home, journal, chance.choice(acked[-20:]))
    elif what == "clean":
        clean(home)
    elif what == "purge":
        purge(home, GRACE_MS)
    else:
        found = verify(home) if what == "verify" else eraser_of(home).list(now_ms=wall_clock_ms())
        raise_first(found.failed.values())
    journal.say("did", what)


def append(home: Home, journal: Journal, number: int) -> None:
    """A batch, under its own run id: again it is not appended twice."""
    journal.say("began", number)
    home.store.append(TOPIC, batch_with_person(number), f"run-{number}", wall_clock_ms())
    journal.say("acked", number)


def erase(home: Home, journal: Journal, number: int) -> None:
    """The person of a batch that was acknowledged."""
    journal.say("asking", number)
    eraser = eraser_of(home)
    request = ErasureRequest(request_id(number), [TOPIC], [person(number)], reason=f"ticket {number}")
    result = eraser.request(eraser.propose(request, now_ms=wall_clock_ms()), now_ms=wall_clock_ms())
    raise_first(result.failed.values())
    journal.say("asked", number)


def clean(home: Home) -> None:
    cleaner = Cleaner(home.store, in_process_engine(home.store.files))
    result = carry_out(cleaner, cleaner.plan([TOPIC], now_ms=wall_clock_ms(), requested=True), new_id())
    raise_first(result.failed.values())


def purge(home: Home, grace_ms: int) -> None:
    result = Purger(home.store).purge([TOPIC], now_ms=wall_clock_ms(), orphan_grace_ms=grace_ms)
    raise_first(result.failed.values())


def verify(home: Home) -> ErasureList:
    return eraser_of(home).verify(now_ms=wall_clock_ms())


def raise_first(errors: object) -> None:
    """Raise one that may not happen, if there is one; else any."""
    found = [error for error in errors if isinstance(error, KeptlogError)]  # type: ignore[attr-defined]
    for error in sorted(found, key=lambda each: isinstance(each, MAY_HAPPEN)):
        raise error
