"""What people read: a title, lines, and the same as JSON.

A message tells of one condition. Where very many conditions begin or end at once, one message tells of all of them: a
store that is gone breaks three hundred topics, and three hundred mails help nobody.

A message that is sent again, because nobody knows whether it arrived, has the same id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from keptlog.log.told.conditions import Event, KnownCondition
from keptlog.log.words.counted import counted
from keptlog.log.words.iso_time import iso_time

LINES = 50
"""So many conditions are told in words; JSON has all."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message. ``events`` is what a program reads of it."""

    id: str
    home: str
    title: str
    lines: tuple[str, ...]
    events: tuple[dict[str, Any], ...] = ()

    @property
    def text(self) -> str:
        """All of it for people."""
        return "\n".join([self.title, *self.lines])

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "home": self.home,
            "title": self.title,
            "text": "\n".join(self.lines),
            "events": list(self.events),
        }


def message_of(home: str, told: Sequence[tuple[KnownCondition, Event]]) -> Message:
    """A message about conditions, one at least, and what is new about each."""
    home, told = shown(home), [(_shown(each), event) for each, event in told]
    ids = [f"{home} {event} {each.id} {each.since_ms} {each.announced}" for each, event in told]
    lines = [_line(each, event) for each, event in told]
    more = [f"and {counted(len(lines) - LINES, 'more condition')}"] if len(lines) > LINES else []
    return Message(
        hashlib.sha256("\n".join(ids).encode()).hexdigest()[:32],
        home,
        f"keptlog {home}: {_title(told)}",
        (*lines[:LINES], *more),
        tuple(_event(each, event) for each, event in told),
    )


def trial_message(home: str, now_ms: int) -> Message:
    """What ``--test`` sends."""
    home = shown(home)
    line = f"Somebody tried at {iso_time(now_ms)} whether messages arrive. Nothing is wrong."
    return Message(f"test-{now_ms}", home, f"keptlog {home}: this is a test", (line,))


def shown(text: str) -> str:
    """A text in one line, also where a path of any bytes is in it, which no receiver would take."""
    return " ".join(text.encode("utf-8", "replace").decode().split())


def _shown(each: KnownCondition) -> KnownCondition:
    return replace(each, subject=shown(each.subject), topic=shown(each.topic), text=shown(each.text))


def _title(told: Sequence[tuple[KnownCondition, Event]]) -> str:
    if len(told) == 1:
        each, event = told[0]
        what = f"{each.subject}: {each.matter}"
        return {Event.BEGAN: what, Event.GOT_WORSE: f"{what}, worse"}.get(event, f"{what} is over")
    ended = sum(event is Event.CLEARED for _, event in told)
    began = counted(len(told) - ended, "condition")
    return f"{began}, {ended} over" if ended else began


def _line(each: KnownCondition, event: Event) -> str:
    if event is Event.CLEARED:
        return f"{each.subject}: {each.matter} is over, it began at {iso_time(each.since_ms)}. It was: {each.text}"
    return each.text


def _event(each: KnownCondition, event: Event) -> dict[str, Any]:
    return {
        "event": event.value,
        "condition": each.matter.value,
        "subject": each.subject,
        "topic": each.topic or None,
        "level": "near" if each.announced == 1 else "broken",
        "since": iso_time(each.since_ms),
        "since_ms": each.since_ms,
        "ended_ms": each.ended_ms,
        "text": each.text,
    }
