"""What is remembered while messages are sent: a kill in between, several ways at once, an order that is kept."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.log.told.conditions import Condition, Matter, Sighting
from keptlog.notify import memory
from keptlog.notify.adapters import Adapter, Mail, NotDelivered, Webhook
from keptlog.notify.memory import NotifyMemory, NotifyState
from keptlog.notify.messages import Message
from keptlog.notify.settings import HttpSettings, NotifySettings, SmtpSettings
from keptlog.passes.watch import Watch
from tests.notify.servers import LOOPBACK, mail_server, web_server

NOW_MS = 1_800_000_000_000


@dataclass
class Way:
    """Delivers all, or after some messages nothing more."""

    name: str
    most: int = 1000
    place: str = "here"
    taken: list[Message] = field(default_factory=list)

    def send(self, message: Message, now_ms: int) -> NotDelivered | None:  # noqa: ARG002  # one interface
        if len(self.taken) >= self.most:
            return NotDelivered("full")
        self.taken.append(message)
        return None


def bad(count: int) -> Sighting:
    conditions = tuple(Condition(Matter.UNCLEANABLE, f"t-{n}", f"t-{n} is bad", "t") for n in range(count))
    return Sighting(NOW_MS, conditions, {Matter.UNCLEANABLE: {"t"}})


def watch(home: Path, *ways: Adapter) -> Watch:
    return Watch(home, NotifySettings("crm"), lambda: 0, ways)


def test_a_process_that_dies_after_it_has_sent_sends_the_same_message_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way, kept, keep = Way("way"), [], NotifyMemory.keep

    def dies_the_second_time(folder: NotifyMemory, state: NotifyState) -> None:
        kept.append(state)
        if len(kept) == 2:
            raise KeyboardInterrupt
        keep(folder, state)

    monkeypatch.setattr(NotifyMemory, "keep", dies_the_second_time)
    with pytest.raises(KeyboardInterrupt):
        watch(tmp_path, way).tell(lambda: bad(1))
    assert len(way.taken) == 1
    for _ in range(3):
        watch(tmp_path, way).tell(lambda: bad(1))
    first, again = way.taken
    assert first.id == again.id


def test_what_no_way_has_told_yet_is_not_sent_at_each_look_where_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = Way("way", most=0)
    watch(tmp_path, way).tell(lambda: bad(1))

    def is_full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    way.most = 1000
    with monkeypatch.context() as full:
        full.setattr(memory, "replace_file", is_full)
        for _ in range(3):
            with pytest.raises(StorageUnavailable, match="No space left on device"):
                watch(tmp_path, way).tell(lambda: bad(1))
    assert way.taken == []
    for _ in range(3):
        watch(tmp_path, way).tell(lambda: bad(1))
    assert len(way.taken) == 1


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


def test_a_message_that_is_refused_for_good_keeps_no_other_back(tmp_path: Path) -> None:
    with web_server() as inbox, mail_server() as mails:
        inbox.refused, mails.refused_content = "t-0 ", b"t-0 "
        ways: list[Adapter] = [
            Webhook(HttpSettings(inbox.url), 5),
            Mail(SmtpSettings(LOOPBACK, mails.port, "none", "a@b.org", ("c@d.org",)), 5),
        ]
        for _ in range(2):
            delivery = watch(tmp_path, *ways).tell(lambda: bad(3))
            assert delivery
            assert delivery.failed.keys() == {"webhook", "smtp"}
            assert "answers 400" in delivery.failed["webhook"]
            assert "refuses the mail (code 554)" in delivery.failed["smtp"]
        assert [body["text"] for body in inbox.taken] == ["t-1 is bad", "t-2 is bad"]
        assert len(mails.mails) == 2
        inbox.refused = None
        delivery = watch(tmp_path, ways[0]).tell(lambda: bad(3))
        assert delivery
        assert delivery.failed == {}
        assert inbox.taken[-1]["text"] == "t-0 is bad"


def test_of_many_in_one_message_that_is_refused_all_but_the_cause_are_told(tmp_path: Path) -> None:
    with web_server() as inbox:
        inbox.refused = "t-7 "
        way = Webhook(HttpSettings(inbox.url), 5)
        delivery = watch(tmp_path, way).tell(lambda: bad(30))
        assert delivery
        assert "answers 400" in delivery.failed["webhook"]
        told = [event["subject"] for body in inbox.taken for event in body["events"]]
        assert sorted(told) == sorted(f"t-{n}" for n in range(30) if n != 7)
        posts = len(inbox.posts)
        assert posts < 15
        watch(tmp_path, way).tell(lambda: bad(30))
        assert len(inbox.posts) == posts + 1


def test_a_server_that_refuses_all_is_asked_once(tmp_path: Path) -> None:
    for status in (401, 402, 403, 404, 411, 415, 421, 426, 429, 503):
        with web_server() as inbox:
            inbox.status = status
            assert watch(tmp_path, Webhook(HttpSettings(inbox.url), 5)).tell(lambda: bad(5))
            assert len(inbox.posts) == 1
