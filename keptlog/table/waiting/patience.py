"""Waits for what may hang, as a request without a time-out does, and not for ever."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

_Result = TypeVar("_Result")

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 120.0
"""Of a catalog: longer than those take that write metadata themselves, and try again where storage is busy."""


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
