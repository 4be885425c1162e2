"""``keptlog notify``: a log that breaks and is mended, told to real servers; and what must not be told twice."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from keptlog.home import new_id, open_home
from keptlog.log.record import NewRecord
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.notify.checks import leave_checks
from keptlog.notify.ticks import leave_tick
from keptlog.passes.clean import Cleaner
from keptlog.table.store import LogStore
from tests.broken_topics import BREAKAGES
from tests.cli.conftest import Outcome, Run
from tests.in_process import in_process_engine
from tests.mock_broker import MockBroker, mock_broker
from tests.notify.servers import HttpInbox, MailInbox, mail_server, web_server

NOW_MS = 1_800_000_000_000
MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS
SETTINGS = {"cleanup.policy": "compact", "segment.ms": "1000"}


@dataclass
class Scene:
    """A home whose clock is ours."""

    keptlog: Run
    home: Path
    environment: pytest.MonkeyPatch
    now_ms: int = NOW_MS
    _store: list[LogStore] = field(default_factory=list)

    @property
    def store(self) -> LogStore:
        if not self._store:
            self._store.append(open_home(self.home).store)
        return self._store[0]

    def topic(self, name: str = "users", **settings: str) -> None:
        config = SETTINGS | {key.replace("_", "."): value for key, value in settings.items()}
        self.store.create_topic(name, 1, config)
        records = [NewRecord(b"key-of-a-person", value, NOW_MS - DAY_MS, 0) for value in (b"1", b"2")]
        self.store.append(name, records, new_id(), NOW_MS)

    def clean(self, topic: str) -> None:
        cleaner = Cleaner(self.store, in_process_engine(self.store.files))
        cleaner.commit(cleaner.stage(cleaner.begin([topic], new_id(), now_ms=self.now_ms, requested=True)))

    def break_log(self, topic: str = "users") -> Callable[[], None]:
        """Make its segment unreadable and let a clean fail; mends it and cleans when it is called."""
        path = Path(self.store.logs(topic)[0].segments[0].path.removeprefix("file://"))
        content = path.read_bytes()
        path.write_bytes(b"this is no Parquet file")
        self.clean(topic)

        def mend() -> None:
            path.write_bytes(content)
            self.clean(topic)

        return mend

    def notify(self, *options: str, after_ms: int = 5 * MINUTE_MS) -> Outcome:
        """A look, some time after the one before, by a process that knows nothing of it."""
        self.now_ms += after_ms
        self.environment.setenv("KEPTLOG_NOW_MS", str(self.now_ms))
        return self.keptlog("notify", *(options or ["--once"]))

    def webhook(self, inbox: HttpInbox) -> None:
        self.environment.setenv("KEPTLOG_NOTIFY_WEBHOOK_URL", inbox.url)

    def mail(self, inbox: MailInbox) -> None:
        given = {
            "HOST": "127.0.0.1",
            "PORT": str(inbox.port),
            "TLS": "none",
            "FROM": "k@example.org",
            "TO": "a@example.org",
        }
        for name, text in given.items():
            self.environment.setenv(f"KEPTLOG_NOTIFY_SMTP_{name}", text)


@pytest.fixture
def scene(keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setenv("KEPTLOG_NOTIFY_NAME", "crm")
    return Scene(keptlog, home, monkeypatch)


@pytest.fixture
def posts(scene: Scene) -> Iterator[HttpInbox]:
    """A web server that the home's people are reached by."""
    with web_server() as inbox:
        scene.webhook(inbox)
        yield inbox


def told(inbox: HttpInbox) -> list[tuple[str, str, str]]:
    """What has arrived: event, condition and subject."""
    return [(each["event"], each["condition"], each["subject"]) for body in inbox.taken for each in body["events"]]


def test_a_log_that_breaks_and_is_mended_is_told_by_two_messages(scene: Scene, posts: HttpInbox) -> None:
    with mail_server() as mails:
        scene.mail(mails)
        scene.topic()
        assert [scene.notify().code for _ in range(2)] == [0, 0]
        assert (posts.posts, mails.mails) == ([], [])
        mend = scene.break_log()
        assert [scene.notify().code for _ in range(4)] == [0] * 4
        mend()
        assert [scene.notify().code for _ in range(4)] == [0] * 4
    assert told(posts) == [("began", "uncleanable", "users-0"), ("cleared", "uncleanable", "users-0")]
    assert len(posts.posts) == 2
    assert [each["Subject"] for each in mails.mails] == [
        "keptlog crm: users-0: uncleanable",
        "keptlog crm: users-0: uncleanable is over",
    ]
    everything = json.dumps(posts.posts) + "".join(each.as_string() for each in mails.mails)
    assert "key-of-a-person" not in everything
    assert "no clean succeeds before its data are repaired" in posts.posts[0]["text"]


def test_a_server_that_is_down_is_told_once_when_it_is_back(scene: Scene) -> None:
    scene.topic()
    with web_server() as inbox:
        scene.webhook(inbox)
    mend = scene.break_log()
    outcomes = [scene.notify() for _ in range(3)]
    assert [each.code for each in outcomes] == [1] * 3
    assert all("not delivered by webhook, it is tried again at the next look" in each.err for each in outcomes)
    with web_server(inbox.port, inbox):
        assert [scene.notify().code for _ in range(3)] == [0] * 3
        assert told(inbox) == [("began", "uncleanable", "users-0")]
        mend()
        scene.notify()
        inbox.status = 503
        assert [scene.notify().code for _ in range(3)] == [1] * 3
        inbox.status = 200
        assert [scene.notify().code for _ in range(3)] == [0] * 3
    assert told(inbox)[1:] == [("cleared", "uncleanable", "users-0")]


def test_a_way_that_is_broken_costs_the_others_nothing(scene: Scene, posts: HttpInbox) -> None:
    with mail_server() as mails:
        scene.mail(mails)
    scene.topic()
    mend = scene.break_log()
    assert [scene.notify().code for _ in range(3)] == [1] * 3
    with mail_server(mails):
        assert scene.notify().code == 0
    mend()
    assert [scene.notify().code for _ in range(3)][-1] == 1
    assert told(posts) == [("began", "uncleanable", "users-0"), ("cleared", "uncleanable", "users-0")]
    assert [each["Subject"] for each in mails.mails] == ["keptlog crm: users-0: uncleanable"]


def test_of_three_hundred_topics_the_broken_one_is_told(scene: Scene, posts: HttpInbox) -> None:
    for number in range(299):
        scene.store.create_topic(f"t{number}", 1, SETTINGS)
    scene.topic()
    scene.notify()
    mend = scene.break_log()
    scene.notify()
    scene.notify()
    assert told(posts) == [("began", "uncleanable", "users-0")]
    leave_checks(scene.home, {f"t{number}-0": {"G1": "a file is damaged"} for number in range(299)})
    mend()
    scene.notify()
    scene.notify()
    assert len(posts.taken) == 3
    assert sorted(len(each["events"]) for each in posts.taken) == [1, 1, 299]
    assert posts.taken[1]["title"] == "keptlog crm: 299 conditions"


@pytest.mark.parametrize("breakage", BREAKAGES[::4], ids=lambda each: each.id)
def test_a_topic_that_cannot_be_read_clears_nothing(scene: Scene, posts: HttpInbox, breakage: Any) -> None:
    scene.topic()
    scene.topic("orders")
    scene.break_log()
    scene.notify()
    breakage(scene.store, "users")
    shutil.rmtree(scene.home / "cache")  # what is remembered of a topic is believed until its location moves
    assert [scene.notify().code for _ in range(4)] == [0] * 4
    assert told(posts) == [("began", "uncleanable", "users-0"), ("began", "unreadable", "users")]


def test_a_catalog_that_is_gone_is_one_condition_and_clears_nothing(scene: Scene, posts: HttpInbox) -> None:
    scene.topic()
    scene.break_log()
    scene.notify()
    catalog = scene.home / "catalog.db"
    content = catalog.read_bytes()
    catalog.write_bytes(b"this is no database" * 1000)
    assert [scene.notify().code for _ in range(4)] == [0] * 4
    assert told(posts) == [("began", "uncleanable", "users-0"), ("began", "catalog", "all topics")]
    catalog.write_bytes(content)
    scene._store.clear()
    assert [scene.notify().code for _ in range(3)] == [0] * 3
    assert told(posts)[2:] == [("cleared", "catalog", "all topics")]


def test_a_log_that_nobody_cleans_in_time_is_told_and_one_that_gets_old_records_is_not(
    scene: Scene, posts: HttpInbox
) -> None:
    """Its records are a day old when they come in, and were to be compacted within an hour."""
    scene.topic(max_compaction_lag_ms=str(60 * MINUTE_MS))
    outcomes = [scene.notify() for _ in range(3)]
    assert (posts.posts, [each.code for each in outcomes]) == ([], [0] * 3)
    assert "were to be compacted by" in scene.notify("--dry-run", after_ms=0).out
    scene.notify()
    assert told(posts) == [("began", "compaction deadline", "users-0")]
    scene.clean("users")
    scene.notify()
    scene.notify()
    assert told(posts)[1:] == [("cleared", "compaction deadline", "users-0")]


def test_a_topic_that_is_deleted_takes_its_conditions_along(scene: Scene, posts: HttpInbox) -> None:
    scene.topic()
    scene.break_log()
    leave_checks(scene.home, {"users-0": {"G1": "a file is damaged"}})
    scene.notify()
    scene.store.delete_topic("users", scene.now_ms)
    outcomes = [scene.notify() for _ in range(3)]
    assert "there is no topic in" in outcomes[0].err
    assert sorted(told(posts)) == [
        ("began", "broken check", "users-0"),
        ("began", "uncleanable", "users-0"),
        ("cleared", "broken check", "users-0"),
        ("cleared", "uncleanable", "users-0"),
    ]
    assert json.loads((scene.home / "notify" / "checks.json").read_text()) == {}


def test_what_verify_finds_broken_is_told_until_it_passes(scene: Scene, posts: HttpInbox) -> None:
    scene.topic()
    path = Path(scene.store.logs("users")[0].segments[0].path.removeprefix("file://"))
    content = path.read_bytes()
    path.write_bytes(content[:-40] + b"x" * 40)
    assert scene.keptlog("verify").code == 1
    scene.notify()
    scene.notify()
    assert told(posts) == [("began", "broken check", "users-0")]
    path.write_bytes(content)
    scene.notify()
    assert len(posts.posts) == 1
    assert scene.keptlog("verify").code == 0
    scene.notify()
    scene.notify()
    assert told(posts)[1:] == [("cleared", "broken check", "users-0")]


def test_sensors_that_are_silent_are_told_and_nobody_misses_those_that_never_were(
    scene: Scene, posts: HttpInbox
) -> None:
    scene.topic()
    scene.notify()
    assert posts.posts == []
    leave_tick(scene.home, "crm_", scene.now_ms, 30_000)
    scene.notify(after_ms=9 * MINUTE_MS)
    assert posts.posts == []
    scene.notify()
    assert told(posts) == [("began", "sensors", "the cleaning sensors of crm")]
    leave_tick(scene.home, "crm_", scene.now_ms, 30_000)
    scene.notify()
    leave_tick(scene.home, "crm_", scene.now_ms, 30_000)
    scene.notify()
    assert told(posts)[1:] == [("cleared", "sensors", "the cleaning sensors of crm")]


def test_a_spark_server_that_is_gone_is_told_once_it_lasts(scene: Scene, posts: HttpInbox) -> None:
    scene.topic()
    scene.environment.setenv("KEPTLOG_SPARK_MASTER", "sc://127.0.0.1:1/;token=planted-connect-token")
    scene.notify()
    assert posts.posts == []
    scene.notify()
    assert told(posts) == [("began", "spark", "all topics")]
    assert "planted-connect-token" not in json.dumps(posts.posts)


def test_a_damaged_memory_is_one_line_and_one_message(scene: Scene, posts: HttpInbox) -> None:
    scene.topic()
    scene.topic("orders")
    scene.break_log()
    leave_checks(scene.home, {"orders-0": {"G1": "a file is damaged"}})
    scene.notify()
    assert len(posts.posts) == 2
    state = scene.home / "notify" / "state.json"
    for damage in (b"", b"{}", b"[1]", b'{"format": 2}', state.read_bytes()[:-30]):
        state.write_bytes(damage)
        before = len(posts.posts)
        outcome = scene.notify()
        assert outcome.code == 0
        assert outcome.err.count("is damaged, so it is not known what was told") == 1
        assert len(outcome.err.splitlines()) == 1
        assert [len(each["events"]) for each in posts.posts[before:]] == [2]
        assert scene.notify().err == ""
        assert (state.parent / "state.json.damaged").read_bytes() == damage
    assert len(posts.posts) == 7


def test_of_two_at_once_only_one_tells(scene: Scene, posts: HttpInbox) -> None:
    scene.topic()
    scene.break_log()
    folder = scene.home / "notify"
    folder.mkdir()
    with (folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        outcome = scene.notify()
        assert (outcome.code, posts.posts) == (0, [])
        assert "another notify is at work" in outcome.err
    scene.notify()
    assert told(posts) == [("began", "uncleanable", "users-0")]


def test_nothing_is_sent_if_it_could_not_be_remembered(scene: Scene, posts: HttpInbox) -> None:
    scene.topic()
    scene.break_log()
    (scene.home / "notify").write_text("a file in the folder's place")
    outcomes = [scene.notify() for _ in range(3)]
    assert [each.code for each in outcomes] == [1] * 3
    assert all("so it is not known what was told, and nothing is sent" in each.err for each in outcomes)
    assert posts.posts == []


def test_a_dry_run_says_what_holds_and_changes_nothing(scene: Scene, posts: HttpInbox) -> None:
    scene.topic()
    assert scene.notify("--dry-run").out == "nothing is wrong in what could be looked at\n"
    scene.break_log()
    for _ in range(2):
        outcome = scene.notify("--dry-run")
        assert outcome.code == 1
        assert "users-0 is uncleanable since" in outcome.out
        assert "[told: nobody yet]\nwould be sent by webhook: keptlog crm: users-0: uncleanable\n" in outcome.out
    assert posts.posts == []
    assert not (scene.home / "notify" / "state.json").exists()
    scene.notify()
    as_json = scene.notify("--dry-run", "--json").json
    assert as_json["would_send"] == {"webhook": []}
    assert [(each["subject"], each["told"]) for each in as_json["conditions"]] == [("users-0", ["webhook"])]


def test_a_test_reaches_everybody_and_says_who_is_not_reached(scene: Scene, posts: HttpInbox) -> None:
    with mail_server() as mails:
        scene.mail(mails)
        outcome = scene.notify("--test")
        assert outcome.code == 0
        assert outcome.out.splitlines() == [
            f"delivered by webhook to 127.0.0.1:{posts.port}",
            f"delivered by smtp to 127.0.0.1:{mails.port}",
        ]
    outcome = scene.notify("--test", "--json")
    assert outcome.code == 1
    assert [(each["way"], each["failed"] is None) for each in outcome.json] == [("webhook", True), ("smtp", False)]
    assert not (scene.home / "notify").exists()


def test_without_a_way_to_anybody_it_is_bad_input(scene: Scene) -> None:
    scene.topic()
    outcome = scene.notify()
    assert outcome.code == 2
    assert outcome.err.startswith("keptlog: nobody can be reached: set KEPTLOG_NOTIFY_WEBHOOK_URL")
    assert scene.notify("--once", "--test").code == 2
    assert scene.notify("--dry-run").code == 0


def test_what_an_ingest_stopped_at_is_told(scene: Scene, posts: HttpInbox) -> None:
    """The topic here has more than the broker's: somebody has made that anew."""
    with mock_broker() as broker:
        cut_off(scene, broker)
        scene.notify()
        scene.notify()
        assert told(posts) == [("began", "stopped ingest", "users-0")]
        broker.produce("users", *[("a", "2")] * 20)
        scene.notify()
        scene.notify()
        assert told(posts)[1:] == [("cleared", "stopped ingest", "users-0")]


def test_a_broker_that_does_not_answer_clears_nothing(scene: Scene, posts: HttpInbox) -> None:
    with mock_broker() as broker:
        cut_off(scene, broker)
        scene.notify()
        del broker
    scene.notify()
    scene.notify()
    assert [each[:2] for each in told(posts)] == [("began", "stopped ingest"), ("began", "broker")]
    assert "nothing can be ingested" in posts.posts[1]["text"]


def cut_off(scene: Scene, broker: MockBroker) -> None:
    """A topic here that has read ten offsets of a log that has one; a broker that is gone is not waited for long."""
    scene.environment.setattr("keptlog.ingest.lag.WAIT_SECONDS", 1)
    broker.produce("users", ("a", "1"))
    scene.store.create_topic("users", 4, SETTINGS)
    source = SourceIdentity("users", bootstrap=broker.bootstrap)
    scene.store.ingest("users", [Arrival(OffsetRange(0, None, 0, 10), ())], source, 4, new_id())


def test_without_once_it_looks_again_and_again_and_outlives_a_full_disk(scene: Scene, posts: HttpInbox) -> None:
    scene.topic()
    scene.break_log()
    in_the_way = scene.home / "notify"
    in_the_way.write_text("a file in the folder's place")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if in_the_way.is_file():
            in_the_way.unlink()
        if len(pauses) == 3:
            raise KeyboardInterrupt

    scene.environment.setattr("keptlog.cli.notify.time.sleep", pause)
    outcome = scene.notify("--every", "7")
    assert (outcome.code, pauses) == (130, [7, 7, 7])
    assert "so it is not known what was told, and nothing is sent" in outcome.err
    assert told(posts) == [("began", "uncleanable", "users-0")]


def test_a_broker_that_no_topic_has_any_more_is_not_missed(scene: Scene, posts: HttpInbox) -> None:
    with mock_broker() as broker:
        cut_off(scene, broker)
        del broker
    scene.notify()
    scene.notify()
    scene.store.delete_topic("users", scene.now_ms)
    scene.notify()
    scene.notify()
    assert [each[:2] for each in told(posts)] == [("began", "broker"), ("cleared", "broker")]
