"""What is remembered while messages are sent: a kill in between, several ways at once, an order that is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from keptlog.log.conditions import Condition, Matter, Sighting
from keptlog.notify.memory import NotifyFolder, NotifyState
from keptlog.notify.messages import Message
from keptlog.notify.settings import NotifySettings
from keptlog.passes.watch import Watch

NOW_MS = 1_800_000_000_000


@dataclass
class Way:
    """Delivers all, or after some messages nothing more."""

    name: str
    most: int = 1000
    place: str = "here"
    taken: list[Message] = field(default_factory=list)

    def send(self, message: Message, now_ms: int) -> str | None:  # noqa: ARG002  # one interface
        if len(self.taken) >= self.most:
            return "full"
        self.taken.append(message)
        return None


def bad(count: int) -> Sighting:
    conditions = tuple(Condition(Matter.UNCLEANABLE, f"t-{n}", f"t-{n} is bad", "t") for n in range(count))
    return Sighting(NOW_MS, conditions, {Matter.UNCLEANABLE: {"t"}})


def watch(home: Path, *ways: Way) -> Watch:
    return Watch(home, NotifySettings("crm"), lambda: 0, ways)


def test_a_process_that_dies_after_it_has_sent_sends_the_same_message_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way, kept, keep = Way("way"), [], NotifyFolder.keep

    def dies_the_second_time(folder: NotifyFolder, state: NotifyState) -> None:
        kept.append(state)
        if len(kept) == 2:
            raise KeyboardInterrupt
        keep(folder, state)

    monkeypatch.setattr(NotifyFolder, "keep", dies_the_second_time)
    with pytest.raises(KeyboardInterrupt):
        watch(tmp_path, way).tell(lambda: bad(1))
    assert len(way.taken) == 1
    for _ in range(3):
        watch(tmp_path, way).tell(lambda: bad(1))
    first, again = way.taken
    assert first.id == again.id


def test_a_way_that_stops_in_the_middle_goes_on_there(tmp_path: Path) -> None:
    slow, fast = Way("slow", most=2), Way("fast")
    delivery = watch(tmp_path, slow, fast).tell(lambda: bad(5))
    assert delivery
    assert delivery.failed == {"slow": "full"}
    slow.most = 1000
    for _ in range(2):
        watch(tmp_path, slow, fast).tell(lambda: bad(5))
    assert (
        [each.lines for each in slow.taken]
        == [each.lines for each in fast.taken]
        == [(f"t-{n} is bad",) for n in range(5)]
    )


@pytest.mark.parametrize(("count", "messages"), [(10, 10), (11, 1), (500, 1)])
def test_much_at_once_is_one_message(tmp_path: Path, count: int, messages: int) -> None:
    way = Way("way")
    watch(tmp_path, way).tell(lambda: bad(count))
    watch(tmp_path, way).tell(lambda: bad(count))
    assert len(way.taken) == messages
    assert sum(len(each.events) for each in way.taken) == count


def test_a_look_that_is_out_of_time_begins_no_further_message(tmp_path: Path) -> None:
    way, clock = Way("way"), iter(range(0, 10_000_000, 15_000))
    slow = Watch(tmp_path, NotifySettings("crm"), lambda: next(clock), [way])
    assert [slow.tell(lambda: bad(3)) is not None for _ in range(3)] == [True] * 3
    assert len(way.taken) == 3


def test_nobody_looks_before_he_has_the_lock(tmp_path: Path) -> None:
    """A look from before could be older than what the other one has remembered."""
    inner: list[object] = []

    def look() -> Sighting:
        inner.append(watch(tmp_path, Way("way")).tell(lambda: pytest.fail("two look at once")))
        return bad(1)

    assert watch(tmp_path, Way("way")).tell(look)
    assert inner == [None]
