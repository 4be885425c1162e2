"""What ``keptlog doctor`` asks of disks: has the home's room for what it remembers, and each for the logs on it?

And may this user write to the folders in which the home remembers? Another user, such as root, may have made them.

A configured catalog may keep topics on another disk, or where there is none: what lies in a bucket needs no room here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from keptlog.log.segment import Log
from keptlog.log.told.examination import DiskSeen, disk_problems, shut_folder_problem
from keptlog.log.told.problem import Problem
from keptlog.notify.folder import FOLDER as NOTIFY
from keptlog.passes.doctor.home_patient import NotLookedAt, Patient
from keptlog.passes.stored_files import folder_on_disk
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
        may_not_write = place == own and not os.access(place, os.W_OK)
        yield from disk_problems(_seen(place, may_not_write=may_not_write), logs[device])
        if place == own and not may_not_write:
            yield from (shut_folder_problem(str(each), str(own)) for each in _shut_folders(patient.home))


def _home_or_above(patient: Patient) -> Path:
    """The home's folder; of one that opens without it, as with a configured catalog, where it would be made."""
    if patient.home.is_dir():
        return patient.home
    _ = patient.store  # which says so if it can't be opened
    return next(each for each in patient.home.absolute().parents if each.is_dir())


def _shut_folders(home: Path) -> list[Path]:
    """Folders of a home that this user may not write to."""
    folders = [home / name for name in (NOTIFY, CACHE)]
    return [each for each in folders if each.is_dir() and not os.access(each, os.W_OK | os.X_OK)]


def _logs(patient: Patient) -> list[Log]:
    try:
        return patient.logs
    except NotLookedAt:
        return []


def _seen(place: Path, *, may_not_write: bool) -> DiskSeen:
    status = os.statvfs(place)
    files = status.f_favail if status.f_files else None
    is_read_only = bool(status.f_flag & os.ST_RDONLY) or may_not_write
    return DiskSeen(str(place), is_read_only, status.f_bavail * status.f_frsize, files)
