"""Verify, the pass that changes nothing: reads the named logs back, topic by topic, and looks at what else is stored.

What is checked on a log itself stands in ``verify``, what holds bytes that are not live in ``holders``. One log, or one
topic, that can't be read hides nothing of the others.

A topic that was half deleted is no topic any more, and all of its bytes may be there. So is one whose table another
program has dropped. Whoever verifies all is told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from keptlog.errors import KeptlogError, LogCorrupt, UnknownTopic
from keptlog.log.given.given_time import passed_now_ms
from keptlog.log.segment import Log
from keptlog.log.told.conditions import TIMELY_CHECKS
from keptlog.notify.checks import leave_checks
from keptlog.passes.check import CheckResult, what_broke
from keptlog.passes.holders import check_gone, not_looked_at
from keptlog.passes.names import named_logs, require_all
from keptlog.passes.verify import none_looked_at, verify_log
from keptlog.table.catalogs.embedded import unfinished_deletion
from keptlog.table.doctor.needed_there import NOT_LISTED, unowned_and_needed
from keptlog.table.doctor.unowned import unowned_folders

if TYPE_CHECKING:
    from keptlog.table.store import LogStore
    from keptlog.table.unopened import UnopenedStore


Leave = Callable[[Mapping[str, Sequence[CheckResult]], Callable[[], bool]], None]
"""What is done with the results of a look, by topic-partition, right after it. The second says whether their topic is
the one that was looked at still."""


@dataclass(frozen=True, slots=True)
class ToVerify:
    """What some names mean to whoever verifies."""

    logs: tuple[Log, ...]
    unreadable: Mapping[str, KeptlogError]
    """Topics and topic-partitions whose logs can't be had, with the reason."""
    unowned: Mapping[str, KeptlogError]
    """What is no topic any more and may have bytes, with what to do; nothing if topics were named."""
    unknown: Mapping[str, KeptlogError] = field(default_factory=dict)
    """Names that mean nothing."""
    is_of_all: bool = False
    """Whether no names were given."""

    @property
    def not_looked_at(self) -> dict[str, KeptlogError]:
        """Both: nothing of it passes."""
        return {**self.unreadable, **self.unowned}


def to_verify(store: LogStore | UnopenedStore, names: Collection[str]) -> ToVerify:
    """What is to be verified: what ``names`` mean or, without names, all that has bytes.

    Raises:
        UnknownTopic: a name means nothing.
        StorageUnavailable: the catalog can't be reached.
    """
    asked = all_that_is_there(store, names)
    require_all(asked.unknown)
    return asked


def all_that_is_there(store: LogStore | UnopenedStore, names: Collection[str]) -> ToVerify:
    """The same, where a name that means nothing is told and keeps nobody from the others.

    Raises:
        StorageUnavailable: the catalog can't be reached.
    """
    named = named_logs(store, names)
    unknown = {name: error for name, error in named.unreadable.items() if isinstance(error, UnknownTopic)}
    unreadable = {name: error for name, error in named.unreadable.items() if name not in unknown}
    # Asked for after the topics: one whose deletion begins in between is in both.
    return ToVerify(named.logs, unreadable, {} if names else _unowned(store), unknown, not names)


def _unowned(store: LogStore | UnopenedStore) -> dict[str, KeptlogError]:
    found: dict[str, KeptlogError] = {name: unfinished_deletion(name) for name in store.being_deleted()}
    try:
        return found | {each.path: each.error for each in unowned_and_needed(store)}
    except KeptlogError as error:
        return found | {NOT_LISTED: error}


def verify_logs(
    store: LogStore | UnopenedStore, asked: ToVerify, now_ms: int, leave: Leave
) -> dict[str, list[CheckResult]]:
    """Check logs: topic-partition to one result for each of ``CHECKS``, and G8.

    What can't be read stands there by its name. Where all are looked at, a topic that was deleted meanwhile is simply
    not there. Results are left right after each look, at the storage of a topic or at a log: all looks may take hours,
    and what others find meanwhile is newer.
    """
    now_ms = passed_now_ms(now_ms)
    found = {name: _unreadable(error) for name, error in asked.not_looked_at.items()}
    by_topic: dict[str, list[Log]] = defaultdict(list)
    for log in asked.logs:
        by_topic[log.topic_partition.topic].append(log)
    for topic, logs in by_topic.items():
        is_same = partial(_is_same, store, topic, logs[0].topic_id)
        gone = check_gone(store, topic, _partitions(logs), now_ms)
        leave({f"{topic}-{number}": [each] for number, each in gone.items()}, is_same)
        for log in logs:
            name = log.topic_partition
            results = list(verify_log(store, log, now_ms))
            leave({str(name): results}, is_same)
            found[str(name)] = [*results, gone[name.partition]]
        names = [str(log.topic_partition) for log in logs]
        if not all(each.passed for name in names for each in found[name]) and is_gone(store, asked, logs[0]):
            found = {name: results for name, results in found.items() if name not in names}
    return found


def is_gone(store: LogStore | UnopenedStore, asked: ToVerify, log: Log) -> bool:
    """Whether a log went with its topic while all were looked at: there is nothing left of it to be looked at.

    Where another program has dropped the table, its files are there still.
    """
    topic = log.topic_partition.topic
    if not asked.is_of_all or _is_same(store, topic, log.topic_id):
        return False
    try:
        return all(each.name != topic for each in unowned_folders(store))
    except KeptlogError:
        return False


def _is_same(store: LogStore | UnopenedStore, topic: str, topic_id: str | None) -> bool:
    """Whether a topic is the one that was looked at. Where nobody can tell now, it is taken to be.

    It is asked for each broken log of a topic, so it reads none of the others.
    """
    try:
        return topic_id in {None, str(store.load_table(topic).metadata.table_uuid)}
    except UnknownTopic:
        return False
    except KeptlogError:
        return True


def left_in(home: Path, asked: ToVerify, *, is_of_now: bool) -> Leave:
    """Lets a home remember results."""
    told: set[str] = set()
    return lambda found, is_same: leave_checks(home, _by_check(found, asked, is_of_now=is_of_now), told, is_same)


def _by_check(
    found: Mapping[str, Sequence[CheckResult]], asked: ToVerify, *, is_of_now: bool
) -> dict[str, dict[str, str | None]]:
    """By topic-partition and check what is broken, null if nothing is, to be remembered.

    A topic that can't be read is not in it: whoever looks sees that. Neither is what was judged as of another time: it
    says nothing of now.
    """
    told = {name: what_broke(results) for name, results in found.items() if name not in asked.not_looked_at}
    if is_of_now:
        return told
    return {
        name: {check: what for check, what in checks.items() if check not in TIMELY_CHECKS}
        for name, checks in told.items()
    }


def _partitions(logs: list[Log]) -> list[int]:
    return [log.topic_partition.partition for log in logs]


def _unreadable(error: KeptlogError) -> list[CheckResult]:
    """The results of logs that can't even be told apart: what is corrupt breaks G1, else nothing is known."""
    shown_by = {"G1"} if isinstance(error, LogCorrupt) else set()
    reason = str(error)
    return [*none_looked_at(reason, shown_by), not_looked_at(reason)]
