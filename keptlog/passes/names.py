"""Which logs a word means.

People name topics and topic-partitions, ``orders`` or ``orders-0``; no word at all means every log. A word is a
topic-partition if there is one of that name, else a topic: ``a-1`` is partition 1 of ``a`` even if a topic is called
``a-1``, whose logs are then to be named one by one. If ``a`` can't be read, nobody knows whether it has a partition 1.
Then the word means nothing, for the records of another log would be taken for those of this one. The error says how the
logs of the topic ``a-1`` are named: those words mean the same whatever ``a`` is like.

Catalogs and stores are mostly waited for, so topics are read side by side.

A word may mean nothing, and a topic's logs may be unreadable. Neither stops the others: what could not be had is told
with its reason, beside the logs that could. Who takes all or nothing says so (``require_all``), and so does who wants
nothing done for the others before a misspelt word is put right (``refuse_unknown``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from keptlog.errors import KeptlogError, UnknownTopic
from keptlog.log.given.given import texts
from keptlog.log.given.plain_number import plain_number
from keptlog.log.given.unknown_topic import unknown_log, unknown_topic
from keptlog.log.segment import Log
from keptlog.table.catalogs.embedded import unfinished_deletion
from keptlog.table.waiting.reaching import apart
from keptlog.table.waiting.side_by_side import each_apart

if TYPE_CHECKING:
    from keptlog.table.store import LogStore
    from keptlog.table.unopened import UnopenedStore


class Topics(Protocol):
    """Where logs are had from: a ``LogStore``, or what an observer remembers of one."""

    def topics(self) -> Collection[str]:
        """The names of all topics, in the order in which their logs are wanted."""

    def being_deleted(self) -> Collection[str]:
        """Topics whose deletion was begun and is not finished."""

    def logs(self, topic: str) -> Sequence[Log]:
        """The logs of a topic, one for each partition.

        Raises:
            KeptlogError: it can't be read, or was deleted meanwhile (UnknownTopic).
        """


@dataclass(frozen=True, slots=True)
class NamedLogs:
    """The logs that some names mean, each once, and the names whose logs can't be had, with the reason."""

    logs: tuple[Log, ...]
    unreadable: dict[str, KeptlogError]
    meant: Mapping[str, Sequence[Log]] = field(default_factory=dict)
    """By name, the logs that it means."""

    def by_name(self, reasons: Mapping[str, KeptlogError]) -> dict[str, KeptlogError]:
        """What is wrong with whole topics, under the names that were given: so what can't be read is told, too."""
        names: dict[str, list[str]] = defaultdict(list)
        for name, logs in self.meant.items() if reasons else ():
            for topic in {log.topic_partition.topic for log in logs}:
                names[topic].append(name)
        return {name: why for topic, why in reasons.items() for name in names.get(topic, [topic])}


def named_logs(store: Topics, names: Iterable[str] = ()) -> NamedLogs:
    """The logs that ``names`` mean, each topic read once; all logs if there are no names."""
    names = texts(names, "the names of topics and logs")
    topics = store.topics()
    may_be_meant = [topic for name in names for topic in (name.rpartition("-")[0], name) if topic in topics]
    read = each_apart(store.logs, may_be_meant if names else topics)

    def logs_of(topic: str) -> Sequence[Log]:
        if isinstance(found := read[topic], KeptlogError):
            raise found
        return found

    def meant_by(name: str) -> Sequence[Log]:
        topic = name.rpartition("-")[0]
        of_partition = _of_partition(name, read.get(topic, ()), topics)
        if of_partition:
            return of_partition
        if name in topics:
            return logs_of(name)
        for going in {topic, name}.intersection(store.being_deleted()):
            raise unfinished_deletion(going)
        raise unknown_log(name, topics, lambda near: _count(read[near] if near in read else _read(store, near)))

    meant: dict[str, Sequence[Log]] = {}
    unreadable: dict[str, KeptlogError] = {}
    for name in names or topics:
        try:
            meant[name] = meant_by(name) if names else logs_of(name)
        except KeptlogError as error:
            # Without names, a topic that was deleted just now is simply not there.
            if names or not isinstance(error, UnknownTopic):
                unreadable[name] = error
    logs = {log.topic_partition: log for of_name in meant.values() for log in of_name}
    return NamedLogs(tuple(logs.values()), unreadable, meant)


def _of_partition(name: str, logs: Sequence[Log] | KeptlogError, topics: Collection[str]) -> Sequence[Log]:
    """The log of that name among those of the topic before the hyphen; none if there is none."""
    if isinstance(logs, KeptlogError):
        raise _in_doubt(name, logs, topics)
    return [log for log in logs if str(log.topic_partition) == name]


def _in_doubt(name: str, error: KeptlogError, topics: Collection[str]) -> KeptlogError:
    """Why a word means nothing as long as the topic before the hyphen can't be read."""
    if name not in topics:
        return error
    topic = name.rpartition("-")[0]
    way_out = f"{name} may be a log of topic {topic}, so topic {name} is named by its logs: {name}-0 and so on"
    return error.reworded(f"{error}; {way_out}")


def _read(store: Topics, topic: str) -> Sequence[Log] | KeptlogError:
    return apart(topic, lambda: store.logs(topic))


def _count(logs: Sequence[Log] | KeptlogError) -> int:
    return 0 if isinstance(logs, KeptlogError) else len(logs)


def topic_and_partition(store: LogStore | UnopenedStore, name: str) -> tuple[str, int | None]:
    """What a word means by the same rule: a topic and one of its partitions, or null for all of them.

    Without a number behind a hyphen nothing is asked, and whether there is such a topic is left to who reads it.

    Raises:
        UnknownTopic: there is a number, and neither such a log nor such a topic.
    """
    topic, _, number = name.rpartition("-")
    if not number.isdecimal():
        return name, None
    topics = store.topics()
    try:
        partitions, partition = store.describe_topic(topic).partitions if topic in topics else 0, plain_number(number)
    except KeptlogError as error:
        raise _in_doubt(name, error, topics) from error
    if partition is not None and partition < partitions:
        return topic, partition
    if name not in topics:
        raise unknown_log(name, topics, lambda near: partitions if near == topic else _count(_read(store, near)))
    return name, None


def require_topics(names: Iterable[str], topics: Collection[str], besides: str = "") -> None:
    """Refuse a name that is no topic's, before anything is done for the others; ``besides`` ends the message.

    Raises:
        UnknownTopic: the first such name.
    """
    require_all(unknown_topics(names, topics, besides))


def unknown_topics(names: Iterable[str], topics: Collection[str], besides: str = "") -> dict[str, KeptlogError]:
    """Those of the names that are no topic's, each with its error; ``besides`` ends the message."""
    return {name: unknown_topic(name, topics, besides=besides) for name in names if name not in topics}


def require_all(unreadable: Mapping[str, KeptlogError]) -> None:
    """Refuse to go on without the logs that could not be had.

    Raises:
        KeptlogError: why the first of them could not.
    """
    for error in unreadable.values():
        raise error


def refuse_unknown(unreadable: Mapping[str, KeptlogError]) -> None:
    """Refuse a word that means nothing; what means something and can't be read is left to the caller.

    Raises:
        UnknownTopic: the first such word.
    """
    require_all({name: error for name, error in unreadable.items() if isinstance(error, UnknownTopic)})
