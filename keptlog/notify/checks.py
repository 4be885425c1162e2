"""What ``verify`` has found broken and not seen whole since: a file in the home, so that it is known without Dagster.

A log that was found broken stays so until the same check looks at it again and passes. What was not looked at changes
nothing. Whoever verifies, the command or a job, leaves its results here.

The file may be lost, and a damaged one is to be deleted. Then what was broken by what people were told last is still
taken to be (``memory``): that a file is gone is no check that passed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

from keptlog.errors import KeptlogError, LogCorrupt, StorageUnavailable
from keptlog.foreign_json import json_value
from keptlog.notify.folder import NotifyFolder
from keptlog.notify.memory import NotifyMemory
from keptlog.regular_file import read_file
from keptlog.whole_file import replace_file

_logger = logging.getLogger(__name__)
_FILE = "checks.json"
_LOST = "it was broken when people were told of it; what verify has found since, or said of it, is lost: verify again"

Broken = Mapping[str, Mapping[str, str]]
"""By topic-partition, or whatever else is verified: by check, what is broken."""


def checks_file(home: Path) -> Path:
    """Where that is remembered."""
    return NotifyFolder(home).path / _FILE


def broken_checks(home: Path) -> Broken:
    """What is known to be broken, by the file or, if there is none, by what people were told.

    Raises:
        LogCorrupt: the file can't be understood, so that nobody knows.
        StorageUnavailable: it can't be read.
    """
    path = checks_file(home)
    try:
        # It is replaced whole, by a file of another number: who leaves results log by log reads it once.
        stat = path.stat()
        return _read(path, (stat.st_ino, stat.st_size, stat.st_mtime_ns))
    except FileNotFoundError:
        told = NotifyMemory(home).broken_checks()
        return {name: dict.fromkeys(checks, _LOST) for name, checks in told.items() if checks}
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise StorageUnavailable(
            f"{path}: it can't be read ({why}), so it is not known what verify has found"
        ) from None
    except (ValueError, AttributeError):
        raise LogCorrupt(
            f"{path}: it is damaged; delete it, and run keptlog verify to know again what is broken"
        ) from None


@lru_cache(maxsize=4)
def _read(path: Path, _version: tuple[int, int, int]) -> Broken:
    stored = json_value(read_file(path))
    return {str(name): {str(check): str(what) for check, what in found.items()} for name, found in stored.items()}


def leave_checks(
    home: Path,
    found: Mapping[str, Mapping[str, str | None]],
    told: set[str] | None = None,
    is_same: Callable[[], bool] = lambda: True,
) -> None:
    """Remember results: by topic-partition and check what is broken, null if nothing is.

    A look may take hours, and its topic may be deleted and made anew meanwhile. Whether it is the same still is asked
    where the results change anything, and while nobody else changes it.

    What can't be remembered is a line of the log, and stops nobody who verifies. Whoever leaves results log by log says
    so once: ``told`` has the reasons that were said, and gets this one.
    """
    if any(problem for checks in found.values() for problem in checks.values()) or (_known(home) != {}):

        def change(before: Broken) -> Broken:
            after = _merged(before, found)
            return after if after == before or is_same() else before

        _changed(home, change, set() if told is None else told)


def forget_checks(home: Path, is_gone: Callable[[str], bool]) -> None:
    """Remember no results of what is gone; ``is_gone`` is asked by name."""
    if any(is_gone(name) for name in _known(home) or ()):
        _changed(home, lambda before: {name: found for name, found in before.items() if not is_gone(name)}, set())


def forget_topic(home: Path, deleted: str) -> None:
    """Remember no results of a topic that was deleted: one that is made anew under the same name is another topic."""
    try:
        forget_checks(home, lambda name: topic_checked(name) == deleted)
    except KeptlogError as error:
        _logger.warning("what verify has found of %s is still remembered: %s", deleted, error)


def topic_checked(name: str) -> str:
    """The topic of a log that has results; none is found by the name of a topic."""
    return name.rpartition("-")[0]


def _known(home: Path) -> Broken | None:
    """What is known to be broken; null if nobody knows, which is told by who looks, or comes to change it."""
    try:
        return broken_checks(home)
    except KeptlogError:
        return None


def _merged(before: Broken, found: Mapping[str, Mapping[str, str | None]]) -> Broken:
    after = {name: dict(checks) for name, checks in before.items()}
    for name, checks in found.items():
        both: dict[str, str | None] = {**after.get(name, {}), **checks}
        after[name] = {check: problem for check, problem in both.items() if problem}
    return {name: checks for name, checks in after.items() if checks}


def _changed(home: Path, change: Callable[[Broken], Broken], told: set[str]) -> None:
    folder = NotifyFolder(home)
    try:
        with folder.locked("checks.lock", waits=True), folder.telling_why():
            # Over a file that nobody understands nothing is written: what it knew would be taken for whole.
            before = broken_checks(home)
            if (after := change(before)) != before:
                replace_file(checks_file(home), json.dumps(after, indent=1, sort_keys=True).encode())
    except KeptlogError as error:
        if str(error) not in told:
            told.add(str(error))
            _logger.warning("what verify has found is not remembered for keptlog notify: %s", error)
