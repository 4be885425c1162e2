"""``keptlog doctor``: all that can be wrong with a home, looked at once, with the cause and the next step of each.

Checks are a list (``CHECKS``), from what all else rests on to what is seen of single topics. Each asks one thing of a
``Patient``, which looks when it is asked first, and only once. It looks at tables and storage themselves: what the home
remembers of topics would hide a file that is gone.

A check that can't look says why, and no other suffers: of 300 topics, one that can't be read costs only itself. Nothing
is changed, but that a configured catalog may be probed, in namespaces made for that (``catalog_doctor``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from keptlog.errors import Action, KeptlogError, StorageUnavailable, first_line
from keptlog.log.broker import CLEANER_DISABLED, BrokerConfig, purge_interval_ms
from keptlog.log.told.early_end import late_though_cleaned
from keptlog.log.told.examination import (
    SeenBeside,
    ahead_problem,
    clock_problems,
    condition_problems,
    copied_problem,
    file_problems,
    holder_problem,
    lost_problem,
    name_problems,
    no_right_problems,
    timestamp_problems,
    unreadable_problem,
)
from keptlog.log.told.problem import CheckUp, Problem
from keptlog.log.words.counted import some_of
from keptlog.log.words.next_command import next_command
from keptlog.passes.doctor.catalog_cause import known_cause
from keptlog.passes.doctor.disk_doctor import room_problems
from keptlog.passes.doctor.home_patient import NO_FILES, NOT_OPENED, NotLookedAt, Patient
from keptlog.passes.doctor.place_doctor import elsewhere_problem, outlived_problem, own_catalog_problem
from keptlog.passes.doctor.proof_doctor import erasure_problems, receipt_problems
from keptlog.passes.doctor.this_machine import held_here
from keptlog.table.catalogs.embedded import DATABASE, unfinished_deletion
from keptlog.table.catalogs.home_folder import RESTORE
from keptlog.table.doctor.needed_there import unowned_and_needed
from keptlog.table.doctor.topic_exam import PutBack, is_metadata_lost
from keptlog.table.metadata.format import CURRENT
from keptlog.table.namespaces import CONFIGURED
from keptlog.table.waiting.reaching import one_line

_UNREAD_SETTINGS = "its settings can't be read"
_SPARK_IS_DOWN = "the Spark server or cluster is down, or was never started, or its address or token is an old one"
_CATALOG_IS_DOWN = (
    "its database or server is down or damaged, or refuses this user; or PyIceberg's configuration (.pyiceberg.yaml, "
    "PYICEBERG_*) is wrong"
)
_SPARK_IS_WRONG = "Spark, Java or a library is missing, or another version than here, or a setting of it is wrong"
_MEND_SPARK = "do what it says; keptlog plan, verify and purge need no Spark"
_PUT_BACK = "the catalog was put back from a backup, without the files of that time"
_PUT_RIGHT = (
    "put back the catalog that went on; if it is lost, keptlog topic register TOPIC takes in what the storage has "
    "(docs/backup.md). Move no metadata file away before: the newest ones name what the topic has now"
)
_NAMED = 10


@dataclass(frozen=True, slots=True)
class _Check:
    """One question, and how it is answered."""

    name: str
    asks: str
    look: Callable[[Patient], Iterable[Problem]]
    is_of_topics: bool = False
    """Whether it looks at each topic; one that can't be read it has not looked at."""


def examine(patient: Patient) -> list[CheckUp]:
    """Ask everything, one after the other."""
    checks = [check for check in CHECKS if check.look is not _promises or patient.probe]
    return [_asked(check, patient) for check in checks]


def _asked(check: _Check, patient: Patient) -> CheckUp:
    told: list[Problem] = []
    unseen: list[str] = []
    try:
        if check.look is not _home and patient.why_closed:
            return CheckUp(check.name, check.asks, not_looked_at=(NOT_OPENED,))
        told.extend(check.look(patient))
    except Exception as error:  # noqa: BLE001  # who asks doctor has a strange home; the other checks are to tell of it
        unseen += _why_unseen(error)
    try:
        unseen += _unread(patient.unread if check.is_of_topics else ())
    except NotLookedAt:
        pass  # which is told above
    except Exception as error:  # noqa: BLE001  # what stops the look at all topics has mostly stopped the check
        unseen += [each for each in _why_unseen(error) if each not in unseen]
    return CheckUp(check.name, check.asks, tuple(told), tuple(unseen))


def _why_unseen(error: Exception) -> list[str]:
    """Why a check could not look, a line each."""
    if isinstance(error, NotLookedAt):
        return [str(each) for each in error.args]
    if isinstance(error, KeptlogError | OSError):
        return [first_line(error)]
    return [f"it stopped at {one_line(error)}; report it if it stays"]


def _unread(topics: Collection[str]) -> list[str]:
    """That nobody knows it of these, in one line; the check ``topics`` says why."""
    what = "what is wrong with it" if len(topics) == 1 else "what is wrong with them"
    return [f"{some_of(sorted(topics), _NAMED)}, until {what} is mended"] if topics else []


def _settings(patient: Patient) -> Iterator[Problem]:
    for place, error in patient.unread_settings.items():
        if error.action is Action.RETRY:  # the place is right, and a Spark server has not written to it
            yield Problem(place, str(error), _SPARK_IS_DOWN, _MEND_SPARK)
            continue
        cause = "it says something that keptlog does not take"
        yield Problem(place, str(error), cause, "correct it there, or take it out", error.command)


def _home(patient: Patient) -> Iterator[Problem]:
    home = patient.home
    if patient.why_closed:
        yield unreadable_problem(str(home), patient.why_closed)
        return
    yield from map(elsewhere_problem, patient.elsewheres)
    try:
        _ = patient.store
    except NotLookedAt as why:
        error = why.__cause__
        if str(error) in map(str, patient.unread_settings.values()):
            raise NotLookedAt(_UNREAD_SETTINGS) from error
        cause = "the path is another one than you mean, its disk is not mounted, or somebody deleted or damaged it"
        todo = "set KEPTLOG_HOME, mount the disk, or put back what is missing"
        if told := known_cause(error):
            cause, todo = told
        elif str(error).startswith(CONFIGURED):
            cause, todo = _CATALOG_IS_DOWN, "start it or put it back, or correct the configuration"
        yield Problem(str(home), str(error), cause, todo)
        return
    if not patient.is_embedded:
        with contextlib.suppress(NotLookedAt):  # the check of the catalog tells why
            _ = patient.topics
            yield from own_catalog_problem(home)


def _catalog(patient: Patient) -> Iterator[Problem]:
    try:
        _ = patient.topics
        unfinished = patient.store.being_deleted()
    except NotLookedAt as why:
        if why.__cause__ is None or str(why) == NOT_OPENED:
            raise
        yield _catalog_problem(why.__cause__)
        return
    except KeptlogError as error:
        yield _catalog_problem(error)
        return
    if patient.damage:
        what = (
            f"{patient.home / DATABASE} is damaged ({patient.damage}), so topics, or what was done last, may be missing"
        )
        yield _catalog_problem(StorageUnavailable(f"{what}; {RESTORE}").of_damage())
    if not patient.has_warehouse and not patient.elsewheres:
        cause = "its disk is not mounted, or somebody deleted it"
        todo = "mount it, or put it back from a backup of this home"
        yield Problem(
            "warehouse", f"{patient.home}/warehouse, where all files of the topics lie, is not there", cause, todo
        )
    for topic in unfinished:
        command = next_command("topic delete", topic, "--yes")
        cause = "a deletion was killed, or the storage refused some of its files"
        yield Problem(topic, str(unfinished_deletion(topic)), cause, "run it again", command)


def _catalog_problem(error: BaseException) -> Problem:
    if told := known_cause(error):
        return Problem("catalog", first_line(error), *told)
    if isinstance(error, KeptlogError) and error.action in {Action.FIX_DATA, Action.FIX_CONFIG}:
        return unreadable_problem("catalog", error)
    cause = "it is down, or its address or credentials are wrong"
    return Problem("catalog", first_line(error), cause, "see that it answers from this machine; keptlog status asks it")


def _promises(patient: Patient) -> Iterator[Problem]:
    if patient.probe is None:  # then it is not asked at all
        return
    from keptlog.table.doctor.catalog_probe import Answer  # noqa: PLC0415  # few homes have a catalog to be probed

    found = patient.probe()
    for each in found.results:
        if each.answer is Answer.BROKEN:
            what = f"{each.probe.name}: it should be that {each.probe.promise}, and {each.seen}"
            yield Problem(found.catalog, what, "this catalog works otherwise", each.probe.follows)
    unseen = [f"{each.probe.name} ({each.seen})" for each in found.results if each.answer is Answer.NOT_LOOKED_AT]
    if unseen:
        raise NotLookedAt("; ".join(unseen))


def _topics(patient: Patient) -> Iterator[Problem]:
    errors = {topic: seen for topic, seen in patient.exams.items() if isinstance(seen, KeptlogError)}
    outages = [error for error in errors.values() if isinstance(error, StorageUnavailable)]
    if 1 < len(outages) == len(patient.exams):
        # The storage of all topics is gone: one problem, and not one for each.
        yield unreadable_problem("all topics", outages[0])
        return
    yield from outlived_problem(patient.outlived)
    told_of_home = {*patient.outlived, *(name for each in patient.moved for name in each.tables)}
    for topic, error in errors.items():
        if topic in told_of_home:
            continue
        history = patient.histories[topic]
        if isinstance(history, PutBack):
            yield Problem(topic, str(error), _PUT_BACK, _PUT_RIGHT)
            continue
        yield (lost_problem if is_metadata_lost(history) else unreadable_problem)(topic, error)
    for name in patient.topics:
        yield from name_problems(name)
    for each in patient.seen:
        errors_beside = (each.unusable_property, each.damaged_reader, *each.damaged_notes)
        yield from (unreadable_problem(each.topic, error) for error in errors_beside if error)


def _formats(patient: Patient) -> Iterator[Problem]:
    for each in patient.seen:
        if each.format == CURRENT:
            continue
        what = f"topic {each.topic} is stored in format {each.format}, and this keptlog writes {CURRENT}"
        if each.format.is_newer:
            cause = "a newer keptlog writes to it"
            todo = "upgrade keptlog here too; until then it reads over what is new"
        else:
            cause, todo = "an older keptlog made it", "nothing: the next commit that makes a snapshot raises it"
        yield Problem(each.topic, what, cause, todo, is_hint=True)


def _files(patient: Patient) -> Iterator[Problem]:
    for each in patient.seen:
        yield from file_problems(each.topic, each.wrong_files)
        yield from no_right_problems(each.topic, each.no_right)


def _history(patient: Patient) -> Iterator[Problem]:
    for each in patient.seen:
        if each.ahead:
            yield ahead_problem(each.topic, each.ahead, each.unknown_metadata)
        if each.copied:
            yield copied_problem(each.topic, each.copied)
    for topic, history in patient.histories.items():
        if isinstance(history, PutBack):
            yield Problem(topic, history.what, _PUT_BACK, _PUT_RIGHT)
    unseen = [topic for topic, history in patient.histories.items() if isinstance(history, KeptlogError)]
    if unseen or patient.outlived:
        raise NotLookedAt(*_unread([*patient.outlived, *unseen]))


def _changes(patient: Patient) -> Iterator[Problem]:
    cause = "the file was cut off or written over by something else than keptlog"
    todo = "put the file back from a copy of the storage: who repeats a change under its --run-id may need it"
    unseen = []
    for each in patient.seen:
        if isinstance(each.damaged_runs, StorageUnavailable):
            unseen.append(first_line(each.damaged_runs))
            continue
        yield from (Problem(each.topic, str(error), cause, todo) for error in each.damaged_runs)
    if unseen:
        raise NotLookedAt(*unseen)


def _folders(patient: Patient) -> Iterator[Problem]:
    if patient.elsewheres or not patient.has_warehouse:
        raise NotLookedAt(NO_FILES)
    if patient.damage:
        raise NotLookedAt("its catalog is damaged, and may not name all topics")
    cause = (
        "another program has changed what its table says of its folder, has named it twice, or has left metadata there"
    )
    for exam in patient.seen:
        if exam.not_own:
            yield Problem(exam.topic, exam.not_own, cause, "do what it says")
    cause = "another program dropped or renamed the topic's table, or the catalog was put back from a backup"
    for each in unowned_and_needed(patient.store):
        yield Problem(each.name, str(each), cause, each.todo)


def _clock(patient: Patient) -> Iterator[Problem]:
    newest_ms = max((each.newest_change_ms for each in patient.seen), default=0)
    broker = BrokerConfig.of(patient.store.clock_guard.broker_settings)
    yield from clock_problems(newest_ms, patient.now_ms, broker.keptlog_clock_max_jump_ms)


def _timestamps(patient: Patient) -> Iterator[Problem]:
    yield from timestamp_problems(patient.logs, patient.now_ms)


def _holders(patient: Patient) -> Iterator[Problem]:
    unseen = []
    for topic, held in patient.holdings().items():
        if isinstance(held, KeptlogError):
            unseen.append(f"{topic}: {first_line(held)}")
            continue
        unseen += [f"{topic}: {line}" for line in held.unread]
        yield from map(holder_problem, [*held.late(patient.now_ms), *held.post_dated(patient.now_ms)])
    here = held_here(patient.home, purge_interval_ms(patient.store.clock_guard.broker_settings))
    yield from map(holder_problem, here.late(patient.now_ms))
    if unseen:
        raise NotLookedAt(*unseen)


def _conditions(patient: Patient) -> Iterator[Problem]:
    seen = patient.sighting(patient.overview)
    names: list[str] = []
    with contextlib.suppress(NotLookedAt):  # which the check of files tells
        names = [wrong.path.rpartition("/")[2] for each in patient.seen for wrong in each.wrong_files]
    overview = patient.overview
    late = late_though_cleaned(overview.assessments, overview.last_passes, overview.broker)
    beside = SeenBeside(patient.now_ms, overview.open_erasures, names, overview.logs, late)
    yield from condition_problems(seen.conditions, overview.broker, beside)
    unseen = [*seen.unknown.values(), *_unread(overview.unreadable)]
    if unseen:
        raise NotLookedAt(*unseen)


def _cleaner(patient: Patient) -> Iterator[Problem]:
    broker = BrokerConfig.of(patient.store.clock_guard.broker_settings)
    if not broker.log_cleaner_enable:
        cause, todo = "somebody has switched it off", "take it out to switch it on"
        yield Problem("log.cleaner.enable", CLEANER_DISABLED, cause, todo, is_hint=True)


def _spark(patient: Patient) -> Iterator[Problem]:
    try:
        patient.try_spark()
    except KeptlogError as error:
        if str(error) in map(str, patient.unread_settings.values()):
            raise NotLookedAt(_UNREAD_SETTINGS) from error
        cause = _SPARK_IS_DOWN if error.action is Action.RETRY else _SPARK_IS_WRONG
        yield Problem("spark", str(error), cause, _MEND_SPARK)


CHECKS: Sequence[_Check] = (
    _Check("settings", "every file and variable of settings can be read", _settings),
    _Check("home", "the home is there, lies where it was made, and has its catalog", _home),
    _Check("disk", "the home's disk can be written to, and has room for a clean", room_problems),
    _Check("catalog", "the catalog answers, its storage is there, and no deletion was left half done", _catalog),
    _Check("promises", "a configured catalog loses no update, and does what keptlog rests on", _promises),
    _Check("topics", "every topic can be read, and nobody but keptlog has changed it", _topics),
    _Check("formats", "every topic is stored in the format of this keptlog", _formats, is_of_topics=True),
    _Check(
        "files", "every live file is in storage, with the length that it was written with", _files, is_of_topics=True
    ),
    _Check("history", "the storage knows no more of a topic than the catalog does", _history),
    _Check(
        "changes", "it is known which changes have landed, of those that can be repeated", _changes, is_of_topics=True
    ),
    _Check(
        "folders",
        "each topic has a folder to itself, and none lies in one that the catalog does not know",
        _folders,
        is_of_topics=True,
    ),
    _Check("clock", "the clock agrees with those of earlier commits", _clock),
    _Check("timestamps", "no record is dated ahead of the clock", _timestamps, is_of_topics=True),
    _Check("holders", "what was superseded is gone by its deadline", _holders, is_of_topics=True),
    _Check(
        "receipts",
        "what is deleted for good can be proved: the key signs, a public key belongs to it, and no receipt waits",
        receipt_problems,
        is_of_topics=True,
    ),
    _Check(
        "erasure records",
        "what is to be erased is known, and so is the secret that it was asked with",
        erasure_problems,
        is_of_topics=True,
    ),
    _Check(
        "conditions", "nothing is late, uncleanable, stopped, broken or silent: what keptlog notify tells", _conditions
    ),
    _Check("cleaner", "the cleaner is switched on", _cleaner),
    _Check("spark", "what Spark needs is here, and a server or cluster that is named answers", _spark),
)
