"""What is remembered between looks, in the home's folder ``notify``: the conditions, and what was told of each where.

    notify/state.json       conditions, and by adapter what it was told
    notify/checks.json      what verify has found broken (``checks``)
    notify/ticks-*.json     when the sensors ticked last (``ticks``)
    notify/lock             held while somebody looks and sends

A Dagster sensor and the command work on the same state, so only one of them does at a time; a process that is killed
gives the lock back. The state is written before anything is sent, and again after each message that was delivered. So a
kill in between costs at most that the one message is sent again, under the same id.

A state file that can't be understood is copied aside. What was told is not known then. So what holds now is told once
more: all of it in one message, on each way.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from keptlog.errors import StorageUnavailable
from keptlog.log.conditions import KnownCondition, Matter
from keptlog.settings import require_entry
from keptlog.whole_file import replace_file

_logger = logging.getLogger(__name__)

FOLDER = "notify"
_STATE = "state.json"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class NotifyState:
    """Conditions, and whether it is known what was told of them."""

    known: tuple[KnownCondition, ...] = ()
    is_anew: bool = False
    """What was told was lost: all that is to be told now goes into one message."""

    def with_told(self, told: Sequence[KnownCondition], way: str) -> NotifyState:
        """The same once these were told on one way."""
        ids = {each.id for each in told}
        return replace(self, known=tuple(each.once_told(way) if each.id in ids else each for each in self.known))


@dataclass(frozen=True, slots=True)
class NotifyFolder:
    """The folder in a home."""

    home: Path

    @property
    def path(self) -> Path:
        return self.home / FOLDER

    @contextlib.contextmanager
    def locked(self, name: str = "lock", *, waits: bool = False) -> Iterator[bool]:
        """Whether nobody else is at work; until the end, nobody else is. Who ``waits`` does so for the others' end.

        Raises:
            StorageUnavailable: the folder can't be written.
        """
        with self.telling_why():
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            with self.telling_why():
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
                    is_mine = True
                except BlockingIOError:
                    is_mine = False
            yield is_mine
        finally:
            os.close(descriptor)

    def state(self, *, is_to_be_kept: bool = True) -> NotifyState:
        """What is remembered; one that can't be understood is copied aside, if what follows is to be kept.

        Raises:
            StorageUnavailable: the folder can't be read, or written.
        """
        path = self.path / _STATE
        with self.telling_why():
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                return NotifyState()
        try:
            return _state(json.loads(content))
        except (ValueError, LookupError, TypeError, AttributeError):
            _logger.warning("%s is damaged, so it is not known what was told: all that holds is told once more", path)
            if is_to_be_kept:
                with self.telling_why():
                    replace_file(path.with_name(f"{_STATE}.damaged"), content)
            return NotifyState(is_anew=True)

    def keep(self, state: NotifyState) -> None:
        """Remember it.

        Raises:
            StorageUnavailable: it can't be written.
        """
        stored = {"format": _FORMAT, "is_anew": state.is_anew, "conditions": [_entry(each) for each in state.known]}
        with self.telling_why():
            replace_file(self.path / _STATE, json.dumps(stored, indent=1).encode())

    @contextlib.contextmanager
    def telling_why(self) -> Iterator[None]:
        """Turn what the disk says into an error that names the folder."""
        try:
            yield
        except OSError as error:
            require_entry(self.home)
            why = error.strerror or type(error).__name__
            raise StorageUnavailable(
                f"{self.path} can't be read or written ({why}), so it is not known what was told, and nothing is sent: "
                "mend that, or set KEPTLOG_HOME to a folder that can be written"
            ) from None


def _entry(known: KnownCondition) -> dict[str, Any]:
    return asdict(known)


def _state(stored: Mapping[str, Any]) -> NotifyState:
    if stored["format"] != _FORMAT:
        raise ValueError(stored["format"])
    known = tuple(_known(each) for each in stored["conditions"])
    return NotifyState(known, bool(stored["is_anew"]))


def _known(entry: Mapping[str, Any]) -> KnownCondition:
    told = {str(way): int(level) for way, level in entry["told"].items()}
    texts = {name: str(entry[name]) for name in ("subject", "text", "topic")}
    times = {name: None if entry[name] is None else int(entry[name]) for name in ("calm_since_ms", "ended_ms")}
    numbers = {name: int(entry[name]) for name in ("since_ms", "announced", "level", "returns")}
    return KnownCondition(matter=Matter(entry["matter"]), told=told, **texts, **times, **numbers)  # type: ignore[arg-type]
