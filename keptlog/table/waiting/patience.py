"""Waits for what may hang, as a request without a time-out does, and not for ever; and before it is tried again."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from threading import Thread
from typing import TypeVar

_Result = TypeVar("_Result")

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 120.0
"""Of a catalog: longer than those take that write metadata themselves, and try again where storage is busy."""
_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 2.0
_LONGEST_RACE_PAUSE_SECONDS = 0.05


def within(do: Callable[[], _Result], seconds: float) -> _Result | None:
    """Do it; null if that takes longer, and then it goes on unseen, until the process ends."""
    done: list[_Result] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            done.append(do())
        except BaseException as error:  # noqa: BLE001  # it is raised again by whoever waits
            failed.append(error)

    thread = Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    return done[0] if done else None


def pause_seconds(lost_races: int, outages: int, salt: str) -> float:
    """How long to wait: longer and longer for an outage to end, hardly at all after a lost race.

    A swap takes longer to prepare than an append, so the longer it waited the more races it would lose: beside busy
    writers it would starve. The pause differs for each change, so that two of them don't meet again at every attempt.
    """
    share = 0.5 + zlib.crc32(f"{salt}/{lost_races}/{outages}".encode()) % 1024 / 2048
    longest_seconds = _LONGEST_PAUSE_SECONDS if outages else _LONGEST_RACE_PAUSE_SECONDS
    return min(_FIRST_PAUSE_SECONDS * 2.0 ** (outages or lost_races), longest_seconds) * share
