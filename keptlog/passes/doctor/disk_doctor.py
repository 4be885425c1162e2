"""What ``keptlog doctor`` asks of disks: has the home's room for what it remembers, and each for the logs on it?

And may this user write there: to the catalog, and to the folders of topics, of receipts and of what the home remembers?
Another user may have made them, such as root. Who may not write to the catalog, or to the home that has it, is told
that alone.

A configured catalog may keep topics on another disk, or where there is none: what lies in a bucket needs no room here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from keptlog.log.segment import Log
from keptlog.log.told.examination import DiskSeen, disk_problems
from keptlog.log.told.problem import Problem
from keptlog.log.told.shut_folders import ShutFolders, all_topics_shut_problem, shut_folders_problem
from keptlog.notify.folder import FOLDER as NOTIFY
from keptlog.passes.doctor.home_patient import NotLookedAt, Patient
from keptlog.passes.stored_files import folder_on_disk
from keptlog.table.catalogs.configuration import catalog_settings, sqlite_file
from keptlog.table.catalogs.embedded import DATABASE
from keptlog.table.doctor.shut_folders import shut_in_chain
from keptlog.table.doctor.topic_exam import TopicExam
from keptlog.table.io.files import local_path
from keptlog.table.reading.cache import FOLDER as CACHE


def room_problems(patient: Patient) -> Iterator[Problem]:
    """A disk that nothing can be written to, or that has no room for a clean."""
    own = _home_or_above(patient)
    places = {own.stat().st_dev: own}
    logs: dict[int, list[Log]] = {device: [] for device in places}
    for log in _logs(patient):
        folder = folder_on_disk(log.segments)
        if folder is None:
            continue
        with suppress(OSError):  # files that are gone are told by themselves
            device = folder.stat().st_dev
            places.setdefault(device, folder)
            logs.setdefault(device, []).append(log)
    for device, place in places.items():
        is_own = place == own
        is_shut, is_beside = is_own and not os.access(place, os.W_OK), is_own and _uses_another(patient)
        yield from disk_problems(_seen(place, is_shut=is_shut, is_beside=is_beside), logs[device])
        if is_own and (is_beside or not is_shut):
            yield from _shut_problems(patient, str(own))


def _home_or_above(patient: Patient) -> Path:
    """The home's folder; of one that opens without it, as with a configured catalog, where it would be made."""
    if patient.home.is_dir():
        return patient.home
    _ = patient.store  # which says so if it can't be opened
    return next(each for each in patient.home.absolute().parents if each.is_dir())


def _shut_problems(patient: Patient, home: str) -> Iterator[Problem]:
    """What this user may not write to in a home, and in the topics of it, wherever these lie on a disk here."""
    database = _database(patient)
    if database and database.is_file() and not os.access(database, os.W_OK):
        follows = "so this user can change nothing of this home"
        yield shut_folders_problem(ShutFolders(str(database), str(database), [str(database)], follows), home)
        return
    for folder in (str(patient.home / name) for name in (NOTIFY, CACHE)):
        if os.path.isdir(folder) and not os.access(folder, os.W_OK | os.X_OK):  # noqa: PTH112  # a Path may raise
            follows = "so what is found, or was told, is not remembered"
            yield shut_folders_problem(ShutFolders(folder, folder, [folder], follows), home)
    with suppress(NotLookedAt):  # the checks of home, catalog and topics say why
        yield from _shut_topics(patient.seen, home)
        top, folders = shut_in_chain(patient.store)
        if folders:
            follows = "so what this user purges, deletes or erases gets no receipt"
            yield shut_folders_problem(ShutFolders("receipts", top, folders, follows), home)


def _database(patient: Patient) -> Path | None:
    """The file of the catalog, where it has one."""
    if not _uses_another(patient):
        return patient.home / DATABASE
    return sqlite_file(catalog_settings() or {})


def _uses_another(patient: Patient) -> bool:
    """Whether a home uses a configured catalog in place of its own, so that its topics need no file of its own."""
    try:
        return not patient.is_embedded
    except NotLookedAt:  # the check of the home says why
        return False


def _shut_topics(exams: Sequence[TopicExam], home: str) -> Iterator[Problem]:
    """One problem a topic, or one for all of several."""
    follows = "so an append, a clean, a purge or an erasure of this user fails there"
    shut = [ShutFolders(each.topic, local_path(each.location) or "", each.shut, follows) for each in exams if each.shut]
    of_all = all_topics_shut_problem(shut, home) if 1 < len(shut) == len(exams) else None
    yield from [of_all] if of_all else (shut_folders_problem(each, home) for each in shut)


def _logs(patient: Patient) -> list[Log]:
    try:
        return patient.logs
    except NotLookedAt:
        return []


def _seen(place: Path, *, is_shut: bool, is_beside: bool) -> DiskSeen:
    status = os.statvfs(place)
    files = status.f_favail if status.f_files else None
    is_read_only = bool(status.f_flag & os.ST_RDONLY)
    free_bytes = status.f_bavail * status.f_frsize
    return DiskSeen(str(place), is_read_only, free_bytes, files, is_shut=is_shut, is_beside=is_beside)
