"""G8: what was superseded or deleted is gone in time, or it is said what holds it.

The other guarantees are seen in a log's own segments. This one is about all that is *not* live: older snapshots, tags,
files that runs left, journals. So it is looked for once a topic, in its table and its storage
(``keptlog.table.removal.held``), and told of each log by the partition that a file lies in.

A deadline that has passed breaks it, whatever the reason. What could not be listed or read is not looked at. Nor is
what a clock that was ahead has dated, nor what lies in a home that is a copy: its catalog names the files of the
original. Deleted records in a live segment have no deadline, and are told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from keptlog.errors import KeptlogError, first_line
from keptlog.log.broker import BrokerConfig
from keptlog.log.holder import Holdings, is_told_by_g8
from keptlog.passes.check import Check, CheckResult, sentence

if TYPE_CHECKING:
    from keptlog.passes.observable import Observable
    from keptlog.table.store import LogStore
    from keptlog.table.unopened import UnopenedStore

GONE_IN_TIME = Check(
    "G8",
    "gone_in_time",
    "What was superseded or deleted is gone from the storage by its deadline, and nothing holds it.",
)
THIS_MACHINE = "this machine"
"""Where the name of a log stands, for what lies on its disks and may be of any."""


def look_for_holders(store: LogStore | UnopenedStore, topic: str, now_ms: int) -> Holdings:
    """All that holds bytes of a topic which are not live, file by file: its snapshots, and the list of its storage.

    Raises:
        UnknownTopic: there is none.
        LogCorrupt: the topic can't be read.
        StorageUnavailable: the storage can't be listed.
    """
    from keptlog.table.removal.held import held_in  # noqa: PLC0415  # who only wants the check's name opens no table
    from keptlog.table.waiting.reaching import reaching  # noqa: PLC0415

    terms = store.observe(topic).holdings.terms
    with reaching(f"files of topic {topic} can't be listed"):
        found = held_in(
            lambda: store.load_table(topic),
            store.files,
            terms,
            now_ms,
            lambda table: store.clock_guard.purge_refusal(now_ms, table),
        )
    elsewhere = store.read_only
    own = (f"the files of this home itself: {elsewhere}",) if elsewhere else ()
    # Whoever looks as of an earlier time finds commits that came later; only those after the clock are of a wrong one.
    clock_ms = max(now_ms, store.done_ms(now_ms))
    return replace(found, unread=(*found.unread, *own), clock_ms=clock_ms)


def knowing_the_clock(store: Observable, holdings: Mapping[str, Holdings], now_ms: int) -> dict[str, Holdings]:
    """What the tables of some topics tell, by who knows whether a purge believes the clock: else nobody is sent to one.

    A clock that what was superseded last confirms, in any of them, is asked nothing, and mostly that is so.
    """
    known_ms = max((each.since_ms for found in holdings.values() for each in found.held), default=now_ms)
    if now_ms - known_ms <= BrokerConfig.of(store.broker_settings).keptlog_clock_max_jump_ms:
        return dict(holdings)
    try:
        why = store.clock_guard.refusal_of_any(now_ms, known_ms)
    except KeptlogError:  # the catalog was in reach just now: a purge will say what is wrong with it
        why = ""
    return {topic: replace(found, no_purge=why or found.no_purge) for topic, found in holdings.items()}


def check_gone(
    store: LogStore | UnopenedStore, topic: str, partitions: list[int], now_ms: int
) -> dict[int, CheckResult]:
    """G8 of some logs of a topic, by partition; one look for all of them."""
    try:
        holdings = look_for_holders(store, topic, now_ms)
    except KeptlogError as error:
        return dict.fromkeys(partitions, not_looked_at(str(error)))
    except Exception as error:  # noqa: BLE001  # whatever is wrong with a topic, it is nothing to the others
        why = f"topic {topic} can't be looked through: {type(error).__name__}: {first_line(error)}"
        return dict.fromkeys(partitions, not_looked_at(why))
    return {partition: judged(holdings, now_ms, partition) for partition in partitions}


def judged(holdings: Holdings, now_ms: int, partition: int | None = None) -> CheckResult:
    """What a look says of G8, of a log or of all that was looked at."""
    # What holds names and numbers alone is for who asks for all (``explain``).
    holders = [each for each in holdings.holders(now_ms, partition) if is_told_by_g8(each.kind)]
    late = [each for each in holders if each.is_late]
    description = GONE_IN_TIME.description
    if holders:
        description = f"nothing is past its deadline; {sentence([str(each) for each in holders])}"
    unsure = [*holdings.unread, *(str(each) for each in holders if each.is_post_dated)]
    if unsure:
        description = f"nothing that was seen is past its deadline; not looked at: {sentence(unsure)}"
    if late:
        description = sentence([str(each) for each in late])
    if holdings.not_looked_at:
        description = f"{description.rstrip('.')}; this storage does not tell: {sentence(holdings.not_looked_at)}"
    return CheckResult(
        name=GONE_IN_TIME.name,
        passed=not late and not unsure,
        description=description,
        metadata={
            "held_files": sum(each.files or 0 for each in holders),
            "held_bytes": sum(each.bytes or 0 for each in holders),
            "late_files": sum(each.late_files for each in late),
            "problems": len(late),
        },
        is_looked_at=bool(late) or not unsure,
    )


def judged_here(holdings: Holdings, now_ms: int) -> CheckResult | None:
    """The same of what lies on this machine; null if there is nothing that may hold records."""
    result = judged(holdings, now_ms)
    return result if result.metadata["held_files"] else None


def not_looked_at(why: str) -> CheckResult:
    """The result where nothing could be looked at."""
    return CheckResult(GONE_IN_TIME.name, passed=False, description=why, metadata={}, is_looked_at=False)
