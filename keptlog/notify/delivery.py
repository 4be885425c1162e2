"""Sends what is still to be told, on each way by itself.

A way that does not work keeps what it has to tell, and costs the others nothing: all are used at once. On one way the
first message that a server does not answer ends the round, because the next would wait for the same server. The next
look goes on where this one has stopped.

A message that a server refuses keeps no other back. If it tells of many conditions, halves of it are sent, until only
that is left which can't be told.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from keptlog.log.told.conditions import Event, KnownCondition
from keptlog.notify.adapters import Adapter
from keptlog.notify.memory import NotifyMemory, NotifyState
from keptlog.notify.messages import Message, message_of

MOST_APART = 10
"""More that is new at once goes into one message."""
BUDGET_MS = 20_000
"""After this time no further message is begun: a sensor's tick has a minute for everything."""

_Told = tuple[KnownCondition, Event]


@dataclass
class Delivery:
    """A round of messages."""

    folder: NotifyMemory
    state: NotifyState
    home: str
    """What the home is called in messages."""
    monotonic_ms: Callable[[], int]
    sent: list[tuple[str, Message]] = field(default_factory=list)
    """Ways with what was delivered on them."""
    failed: dict[str, str] = field(default_factory=dict)
    """By way, why a message was not delivered."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def send_all(self, adapters: Sequence[Adapter], now_ms: int) -> None:
        """Send on all ways what is to be told there.

        Raises:
            StorageUnavailable: it can't be remembered what was told.
        """
        if adapters:
            with ThreadPoolExecutor(len(adapters)) as threads:
                rounds = [threads.submit(self._send, each, now_ms) for each in adapters]
            for each in rounds:
                each.result()
        if self.state.is_anew and adapters and not self.failed:
            self._keep(replace(self.state, is_anew=False))

    def _send(self, adapter: Adapter, now_ms: int) -> None:
        until_ms = self.monotonic_ms() + BUDGET_MS
        waiting = deque(to_be_told(self.state, adapter.name))
        while waiting:
            if self.monotonic_ms() >= until_ms:
                self.failed.setdefault(adapter.name, "there was no time for all messages, the next look goes on")
                return
            told = waiting.popleft()
            message = message_of(self.home, told)
            not_delivered = adapter.send(message, now_ms)
            if not_delivered is None:
                with self._lock:
                    self.sent.append((adapter.name, message))
                    self._keep(self.state.with_told([each for each, _ in told], adapter.name))
            elif not_delivered.is_message_refused and len(told) > 1:
                middle = len(told) // 2
                waiting.extendleft((told[middle:], told[:middle]))
            else:
                self.failed[adapter.name] = not_delivered.why
                if not not_delivered.is_message_refused:
                    return

    def _keep(self, state: NotifyState) -> None:
        self.state = state
        self.folder.keep(state)


def to_be_told(state: NotifyState, way: str) -> list[list[_Told]]:
    """What is still to be told on one way, message by message."""
    found = [(each, event) for each in state.known if (event := each.event_for(way))]
    if len(found) > MOST_APART or (state.is_anew and found):
        return [found]
    return [[each] for each in found]
