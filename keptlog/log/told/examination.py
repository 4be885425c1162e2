"""The rules by which ``keptlog doctor`` judges what was seen of a home: pure, one function a question.

What a sighting shows is not judged again here. ``conditions`` is the one place that says what people are to be told of
a log, and a condition becomes a problem as it is, with its cause and what to do next.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from keptlog.errors import Action, ContradictsBroker, InvalidConfig, KeptlogError, LogCorrupt
from keptlog.log.broker import CLEANER_DISABLED, SWITCH_CLEANER_ON, BrokerConfig
from keptlog.log.erasures.open_erasures import OpenErasures
from keptlog.log.holder import Holder, HolderKind
from keptlog.log.segment import Log, total_bytes
from keptlog.log.told.conditions import TIMELY_CHECKS, Condition, Level, Matter
from keptlog.log.told.early_end import LateThoughCleaned
from keptlog.log.told.erasure_step import erasure_step
from keptlog.log.told.problem import Problem
from keptlog.log.told.stored_files import WrongFile
from keptlog.log.topic_partition import valid_topic_name
from keptlog.log.words.advice import if_deleted
from keptlog.log.words.counted import counted, some_of
from keptlog.log.words.iso_time import iso_time
from keptlog.log.words.next_command import last_argument, next_command
from keptlog.log.words.units import size

_MINUTE_MS = 60_000
_CLOCKS_DIFFER_MS = _MINUTE_MS
"""Iceberg's own patience with clocks."""
_AHEAD_MS = 60 * _MINUTE_MS
"""So far ahead of its clock Kafka's broker takes a record, by default."""
_NAMED = 10
_LEAST_FREE_BYTES = 2**26
_LEAST_FREE_FILES = 1000
_MENDS_BY_PURGE = {
    HolderKind.RETIRED,
    HolderKind.STAGED,
    HolderKind.ORPHAN,
    HolderKind.WATERMARKS,
    HolderKind.JOURNAL,
    HolderKind.OBJECT_VERSION,
}


@dataclass(frozen=True, slots=True)
class DiskSeen:
    """The disk that a home lies on."""

    place: str
    is_read_only: bool
    free_bytes: int
    free_files: int | None
    """How many files it may still get; null where it does not count them."""
    is_shut: bool = False
    """Whether this user may not write to the place, for whatever reason."""
    is_beside: bool = False
    """Whether it is a home whose catalog is another one, so that topics need nothing of it."""


def unreadable_problem(topic: str, error: KeptlogError) -> Problem:
    """A topic that can't be read, or must not be written to."""
    if error.command:
        return Problem(topic, str(error), "another program has changed it", f"run {error.command}", error.command)
    if isinstance(error, LogCorrupt) and error.is_of_property:
        return Problem(topic, str(error), "another program has changed a property of its table", _AS_IT_SAYS)
    if isinstance(error, LogCorrupt) and error.action is Action.FIX_CONFIG:
        return Problem(topic, str(error), "another program has made its table, or changed it", _AS_IT_SAYS)
    if isinstance(error, ContradictsBroker):
        cause = "a broker setting and the topic's own setting contradict each other"
        todo = f"change that broker setting, or the topic's with keptlog topic alter {last_argument(topic)}"
        return Problem(topic, str(error), cause, todo)
    todo = _TODO_BY_ACTION.get(error.action, _AS_IT_SAYS)
    return Problem(topic, str(error), _CAUSE_BY_ACTION.get(error.action, "it says so itself"), todo)


def lost_problem(topic: str, error: KeptlogError) -> Problem:
    """A topic whose metadata file is gone, and there is nothing newer that would say why."""
    cause = (
        "its disk is not mounted; or the file was deleted by something else than keptlog; or files of an earlier time "
        "were put back, or copied before the catalog was; or the topic was deleted after this catalog was backed up"
    )
    todo = (
        "mount its disk, or put the file back from a copy of the storage; only if all files are of one backup, put "
        f"back its catalog too; {if_deleted(topic)}; where the catalog was put back, let "
        f"{next_command('topic register', topic)} take in the receipts first"
    )
    return Problem(topic, str(error), cause, todo)


def ahead_problem(topic: str, ahead: str, files: Sequence[str]) -> Problem:
    """A topic of which the storage knows more than the catalog; ``files`` are what a restored home moves aside."""
    cause = "the catalog was put back from a backup, or another home writes to the same storage"
    todo = (
        "work with the home that went on, and purge nothing with this one. If none did, "
        f"{next_command('topic register', topic)} takes in what was committed since; to give that up, move these files "
        "elsewhere"
    )
    return Problem(topic, ahead, cause, f"{todo}: {_named(files)}", files=tuple(files))


def copied_problem(topic: str, files: Sequence[str]) -> Problem:
    """A topic that another home may have under the name of one of these metadata files."""
    what = f"topic {topic}: another home may have it under the name {_named(files)}"
    cause = "somebody has registered a copy of a metadata file: it has what one that the catalog names has"
    todo = "if one has it, leave that file: no purge deletes what it shows, and topic delete refuses"
    return Problem(topic, what, cause, f"{todo}; if none has it, move that file away", is_hint=True, files=tuple(files))


def _named(files: Sequence[str]) -> str:
    """The first of them: a folder may have ten thousand copies, and no line of a terminal takes them."""
    return some_of(files, _NAMED) + (" (--json has all, as files)" if len(files) > _NAMED else "")


_AS_IT_SAYS = "do what it says"
_CAUSE_BY_ACTION = {
    Action.RETRY: "its storage does not answer, is not mounted, or a file was deleted there",
    Action.FIX_DATA: "the file was cut off, written over or deleted by something else than keptlog",
    Action.FIX_CONFIG: "a setting was changed by another program",
    Action.FIX_STORAGE: "a right is missing: the files are another user's, or credentials expired or may not do it",
    Action.UPGRADE: "a newer keptlog has written to it",
}
_TODO_BY_ACTION = {
    Action.RETRY: "mount the storage, or put the files back from a copy of it",
    Action.FIX_DATA: "put the file back from a copy of the storage",
    Action.FIX_STORAGE: "give this user or these credentials the right; nothing is lost: put nothing back from a copy",
    Action.UPGRADE: "upgrade keptlog here to the version that wrote it",
}


def name_problems(topic: str) -> Iterator[Problem]:
    """A table whose name no topic can have: Kafka takes no such name, and keptlog gives none."""
    try:
        valid_topic_name(topic)
    except InvalidConfig as error:
        what = f"a table of the topics' namespace: {error}"
        yield Problem(repr(topic), what, "another program has renamed it, or made it", "rename it with that program")


def file_problems(topic: str, wrong: Iterable[WrongFile]) -> list[Problem]:
    """Live files that are not in storage, or are not as long as they were written."""
    lost = "something else than keptlog deleted it"
    cut_off = "it was cut off, by a copy that did not finish or a disk that was full, or written over"
    no_other = "; no command can make it anew"
    return [Problem(topic, each.what, lost if each.is_missing else cut_off, each.todo + no_other) for each in wrong]


def no_right_problems(topic: str, paths: Sequence[str]) -> list[Problem]:
    """Live files that are there, and that this user may not read: a list of names and sizes does not tell."""
    if not paths:
        return []
    what = f"{counted(len(paths), 'live file')} can't be read by this user, {paths[0]} first"
    return [Problem(topic, what, _CAUSE_BY_ACTION[Action.FIX_STORAGE], _TODO_BY_ACTION[Action.FIX_STORAGE])]


def disk_problems(disk: DiskSeen, logs: Sequence[Log]) -> list[Problem]:
    """A disk that takes nothing, or nothing of this user, or that has no room for a clean of the largest log."""
    follows = "so nothing is appended, cleaned or remembered"
    if disk.is_beside and not (disk.is_read_only and logs):
        follows = "so what is found is not remembered, and no secret or key can be made there"
    if disk.is_read_only:
        return [
            Problem(
                disk.place,
                f"{disk.place} can't be written to, {follows}",
                "its disk is mounted read-only, as after an error",
                "see what the kernel says of the disk (dmesg), and mount it for writing",
            )
        ]
    if disk.is_shut:
        return [
            Problem(
                disk.place,
                f"{disk.place} can't be written to by this user, {follows}",
                "this user lacks the right: the folder is another user's",
                "nothing if he is only to read; else let its owner, or root, give him the right, or work as its owner",
            )
        ]
    largest = max((total_bytes(log.segments) for log in logs), default=0)
    needed = max(_LEAST_FREE_BYTES, largest)
    is_full = disk.free_bytes < needed
    if not is_full and (disk.free_files is None or disk.free_files >= _LEAST_FREE_FILES):
        return []
    left = size(disk.free_bytes) if is_full else counted(disk.free_files or 0, "file")
    least = f"with less than {size(needed)} appends and cleans soon fail"
    needs = f"a clean of the largest log may write {size(needed)}" if largest == needed else least
    wants = needs if is_full else "each commit writes four or more"
    return [
        Problem(
            disk.place,
            f"the disk of {disk.place} has room for {left}, and {wants}",
            "it is full of something else, or replaced files wait for a purge",
            "run keptlog purge, and make room besides",
            "keptlog purge",
        )
    ]


def clock_problems(newest_ms: int, now_ms: int, max_jump_ms: int) -> list[Problem]:
    """A clock that differs from those of earlier commits."""
    times = f"the newest commit is of {iso_time(newest_ms)}, and this clock shows {iso_time(now_ms)}"
    if newest_ms - now_ms > _CLOCKS_DIFFER_MS:
        todo = "set the clock right (timedatectl status); until it has passed that time, nothing seems to grow older"
        return [Problem("clock", times, "this clock is slow, or one of an earlier writer was fast", todo)]
    if newest_ms and now_ms - newest_ms > max_jump_ms:
        todo = (
            "see whether the clock is right; if it is, the home lay idle: append something, or raise "
            "keptlog.clock.max.jump.ms, and purges and cleans delete again"
        )
        return [Problem("clock", times, "the clock is far ahead, or nothing was committed for long", todo)]
    return []


def timestamp_problems(logs: Iterable[Log], now_ms: int) -> Iterator[Problem]:
    """Records that are dated so far ahead that a broker would refuse them."""
    for log in logs:
        latest_ms = max((each.largest_timestamp_ms for each in log.segments), default=0)
        if latest_ms - now_ms > _AHEAD_MS:
            name = str(log.topic_partition)
            yield Problem(
                name,
                f"{name} has records that are dated up to {iso_time(latest_ms)}, which is still to come",
                "the clock of a producer is fast, or its timestamps are not in ms",
                f"mend the producer; {_dated_anew(log)}. What is there counts as young until then: retention.ms and "
                "the lags do not reach it",
            )


def _dated_anew(log: Log) -> str:
    """How records get other times. An ingest keeps those of the source, whatever the topic here says."""
    if log.is_ingested:
        return (
            "at the source message.timestamp.type=LogAppendTime dates what comes from now on by the broker's clock, "
            "and message.timestamp.after.max.ms refuses what is dated ahead. The same settings here change nothing, "
            "for an ingest keeps the times of its source"
        )
    return (
        f"keptlog topic alter {log.topic_partition.topic} --config message.timestamp.type=LogAppendTime dates what is "
        "appended from now on by this clock"
    )


def holder_problem(holder: Holder) -> Problem:
    """What keeps superseded bytes past their deadline, or nobody can tell until when."""
    told, _, _ = str(holder).rpartition(f": {holder.remedy}")
    is_mended = holder.kind in _MENDS_BY_PURGE and not holder.is_purge_refused and not holder.is_post_dated
    command = next_command("purge", holder.topic) if is_mended else None
    if holder.kind is HolderKind.SPARK:
        command = f"rm -r {shlex.quote(holder.name)}"
    return Problem(
        holder.topic or holder.name,
        told or str(holder),
        _why_held(holder),
        holder.remedy,
        command,
    )


def _why_held(holder: Holder) -> str:
    if holder.is_post_dated:
        return "the clock of whoever wrote it is fast, or its time was set"
    if holder.kind in _MENDS_BY_PURGE and holder.is_purge_refused:
        return "a purge deletes nothing of the topic before that is mended"
    if holder.kind is HolderKind.ELSEWHERE:
        return "another program has put it there, and a commit or a purge has taken it out of the table since"
    if holder.kind is HolderKind.COPIED_STATE:
        return "somebody has registered a copy of a metadata file in a catalog"
    if holder.kind is HolderKind.COMMIT_AHEAD:
        return "a process died before its commit landed, or it has landed in the catalog of another home"
    return "no purge has come since" if holder.kind in _MENDS_BY_PURGE else "whoever made it has not taken it away"


@dataclass(frozen=True, slots=True)
class SeenBeside:
    """What else was seen of a home, by which the next step of a condition is chosen."""

    now_ms: int = 0
    erasures: Mapping[str, OpenErasures] = field(default_factory=dict)
    """By topic."""
    wrong_files: Collection[str] = ()
    """The names of live files that are gone or damaged, without their folders: a problem each, and the first of all."""
    logs: Sequence[Log] = ()
    """Of the topics that can be read."""
    late_though_cleaned: Mapping[str, LateThoughCleaned] = field(default_factory=dict)
    """By topic-partition."""


def condition_problems(
    conditions: Iterable[Condition], broker: BrokerConfig, beside: SeenBeside | None = None
) -> Iterator[Problem]:
    """What people are told of, but for topics, catalog and Spark, which have checks of their own."""
    told = [each for each in conditions if each.level > Level.OPEN and each.matter in _NEXT]
    late = {each.subject: each.text for each in told if each.matter is Matter.DEADLINE}
    uncleanable = {each.subject for each in told if each.matter is Matter.UNCLEANABLE}
    beside = beside or SeenBeside()
    for each in told:
        if each.matter is Matter.DEADLINE and each.subject in uncleanable:
            continue  # it is late because its cleans fail, and that is told with it
        cause, todo, command = _next_step(each, broker, beside)
        runs = command.format(subject=last_argument(each.subject)) if command else None
        is_late = each.matter is Matter.UNCLEANABLE and each.subject in late
        what = f"{each.text}; so {late[each.subject]}" if is_late else each.text
        if each.matter is Matter.DEADLINE and each.subject in beside.late_though_cleaned:
            what += f"; {beside.late_though_cleaned[each.subject]}"
        yield Problem(each.subject, what, cause, todo.format(subject=each.subject), runs)


def _next_step(each: Condition, broker: BrokerConfig, beside: SeenBeside) -> tuple[str, str, str | None]:
    """The cause of a condition, what to do next, and the command that does it."""
    is_off = not broker.log_cleaner_enable
    if each.matter is Matter.ERASURE and each.topic in beside.erasures:
        logs = [log for log in beside.logs if log.topic_partition.topic == each.topic]
        return erasure_step(each.topic, beside.erasures[each.topic], beside.now_ms, logs, is_cleaner_off=is_off)
    if each.matter is Matter.DEADLINE and each.subject in beside.late_though_cleaned and not is_off:
        return beside.late_though_cleaned[each.subject].next_step
    if each.checks and TIMELY_CHECKS.issuperset(each.checks):
        return _NEXT_IF_LATE
    steps = {**_NEXT, **_NEXT_IF_OFF} if is_off else _NEXT
    is_of_file = any(name in each.text for name in beside.wrong_files)
    if is_of_file and each.matter in _NEXT_OF_FILES and not (is_off and each.matter in _NEXT_IF_OFF):
        return (*_NEXT_OF_FILES[each.matter], None)
    return _NEXT_OF_ERRORS.get((each.matter, each.action), steps[each.matter])


_NEXT: dict[Matter, tuple[str, str, str | None]] = {
    Matter.DEADLINE: (
        "no clean has come since it was due: sensors or cron do not run, or the cleans fail",
        "clean it now; keptlog explain says which rule it goes by",
        "keptlog clean {subject}",
    ),
    Matter.UNCLEANABLE: (
        "what the mark says; it is cleared by the next clean that succeeds",
        "mend what it says, then clean it by name",
        "keptlog clean {subject}",
    ),
    Matter.CHECK: (
        "a file was damaged, or another program wrote to the topic",
        "put the file back, or repair the topic, then verify again: what passes is forgotten",
        "keptlog verify {subject}",
    ),
    Matter.INGEST: ("its source has lost records, or is another one now", "it is a choice: the text names both", None),
    Matter.BROKER: ("the cluster is down, or is called otherwise now", "see that it can be reached from here", None),
    Matter.ERASURE: (
        "nobody has looked what it waits for",
        "keptlog erasure list says it",
        "keptlog erasure list",
    ),
    Matter.SENSORS: (
        "Dagster's daemon does not run, or the sensors are switched off",
        "start the daemon (dagster-daemon run), and switch the sensors on in its UI",
        None,
    ),
}
_NEXT_OF_FILES: dict[Matter, tuple[str, str]] = {
    Matter.UNCLEANABLE: (
        "a file of it is gone or damaged, which is a problem of its own above",
        "put that file back, then run keptlog clean {subject}",
    ),
    Matter.CHECK: (
        "a file of it is gone or damaged, which is a problem of its own above",
        "put that file back, then run keptlog verify {subject}",
    ),
}
"""What is next where a file is to be put back first: no command helps before."""
_NEXT_OF_ERRORS: dict[tuple[Matter, Action | None], tuple[str, str, str | None]] = {
    (Matter.INGEST, Action.RETRY): (
        "no broker leads it at the moment, or none tells of it",
        "see why at its cluster; the next ingest goes on once a broker leads it",
        None,
    ),
    (Matter.INGEST, Action.FIX_CONFIG): (
        "the topic was deleted there or is called otherwise now, or the user may not see it",
        "do what it says; if the topic is there, have the permission to describe and read it granted",
        None,
    ),
    (Matter.INGEST, Action.REPORT_BUG): ("it says so itself", _AS_IT_SAYS, None),
    (Matter.BROKER, Action.FIX_CONFIG): (
        "the cluster does not take this user, or a client setting is wrong: a password, a certificate, an address",
        "correct the client settings (kafka.properties, KEPTLOG_KAFKA_…), or have the permission granted",
        None,
    ),
}
"""What is next where an ingest is not stopped for what its source has lost, or a broker does answer."""
_NEXT_IF_LATE = (
    "a deadline has passed: a clean or a purge did not come, or something holds what it would delete",
    "do what it says, clean and purge, then verify again: what passes is forgotten",
    "keptlog verify {subject}",
)
"""What is next where only checks broke that the clock breaks: no file is damaged."""
_NEXT_IF_OFF: dict[Matter, tuple[str, str, str | None]] = {
    Matter.DEADLINE: (CLEANER_DISABLED, f"{SWITCH_CLEANER_ON}: it is late, so it is cleaned first", None),
    Matter.UNCLEANABLE: (
        "what the mark says; it is cleared by the next clean that succeeds, and none is done with the cleaner off",
        f"mend what it says, and {SWITCH_CLEANER_ON}: until then no clean is done, also if it is asked for by name",
        None,
    ),
}
"""What else is next where the cleaner is off: a clean that is asked for does nothing then."""
