"""The sensor that tells people: what the other sensors have seen, to a real server; idle where nobody is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.errors import InvalidConfig, StorageUnavailable
from keptlog.home import new_id
from keptlog.ingest import lag
from keptlog.log.told.conditions import Thresholds
from keptlog.notify.checks import checks_file, leave_checks
from keptlog.notify.ticks import LastTick, last_ticks
from keptlog.passes.clean import Cleaner
from keptlog.passes.watch import tick_evidence
from keptlog.table.metadata.logs import ObservedTopic
from keptlog.table.store import LogStore
from tests.in_process import in_process_engine
from tests.notify.servers import HttpInbox, web_server
from tests.orchestration.conftest import World
from tests.orchestration.ingesting import ingest_world
from tests.orchestration.shipped import CLEAN_SENSORS, SENSORS, ingest_lag_sensor

MINUTE_MS = 60_000
notify_sensor = SENSORS["notify_sensor"]


@pytest.fixture
def posts(monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpInbox]:
    with web_server() as inbox:
        monkeypatch.setenv("KEPTLOG_NOTIFY_WEBHOOK_URL", inbox.url)
        yield inbox


class CrmAlone(World):
    """The same home, of which only some topics are looked after."""

    @property
    def log_store(self) -> LogStoreResource:
        return LogStoreResource(home=str(self.path), topics=["crm.*"])


def told(inbox: HttpInbox) -> list[tuple[str, str, str]]:
    return [(each["event"], each["condition"], each["subject"]) for body in inbox.taken for each in body["events"]]


def clean(world: World) -> None:
    """As a run does, in this process and without Spark."""
    cleaner = Cleaner(world.store, in_process_engine(world.store.files))
    cleaner.commit(cleaner.stage(cleaner.begin([], new_id(), now_ms=world.now_ms, requested=False)))


def ticks(world: World, count: int) -> list[str]:
    """Why each of some ticks asks for no run; a process of its own for each, minutes apart."""
    said = []
    for _ in range(count):
        world.now_ms += 2 * MINUTE_MS
        world.reopen()
        said.append(world.skips(notify_sensor))
    return said


def test_it_is_idle_and_looks_at_nothing_where_nobody_is_named(world: World, looked_at: list[str]) -> None:
    world.topic("users")
    looked_at.clear()
    assert world.skips(notify_sensor).startswith("nobody is told of anything: set KEPTLOG_NOTIFY_WEBHOOK_URL")
    assert looked_at == []
    assert not (world.path / "notify").exists()


def test_a_wrong_setting_is_said_in_every_tick(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPTLOG_NOTIFY_SLAK_URL", "https://planted")
    said = world.skips(notify_sensor)
    assert said.startswith("nobody is told of anything: KEPTLOG_NOTIFY_SLAK_URL is not known: did you mean")
    assert "planted" not in said


def test_a_log_that_breaks_and_is_mended_is_told_by_two_messages(world: World, posts: HttpInbox) -> None:
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    mend = world.break_segment("users")
    clean(world)
    assert ticks(world, 4) == ["1 condition, 1 message sent", *["1 condition, 0 messages sent"] * 3]
    mend()
    clean(world)
    ticks(world, 4)
    assert told(posts) == [("began", "uncleanable", "users-0"), ("cleared", "uncleanable", "users-0")]


def test_it_sees_with_the_eyes_of_the_other_sensors(world: World, posts: HttpInbox, looked_at: list[str]) -> None:
    world.topic("users")
    world.append("users", ("a", "1"))
    world.reopen()
    world.tick(CLEAN_SENSORS[0])
    looked_at.clear()
    world.tick(notify_sensor)
    assert looked_at == []


def test_a_message_that_is_not_delivered_is_said_and_sent_later(world: World, posts: HttpInbox) -> None:
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    world.break_segment("users")
    clean(world)
    posts.status = 500
    assert ticks(world, 2)[-1].endswith(f"not delivered by webhook: 127.0.0.1:{posts.port} answers 500")
    posts.status = 200
    assert ticks(world, 2) == ["1 condition, 1 message sent", "1 condition, 0 messages sent"]


def test_topics_that_a_mount_does_not_look_after_are_left_to_others(world: World, posts: HttpInbox) -> None:
    """Two sensors on one home share what is remembered."""
    for topic in ("crm.users", "sales.orders"):
        world.topic(topic)
        world.append(topic, ("a", "1"), ("a", "2"))
        world.break_segment(topic)
    clean(world)
    ticks(world, 1)
    assert len(told(posts)) == 2
    ticks(CrmAlone(world.path, world.instance, world.now_ms), 4)
    assert len(told(posts)) == 2


def test_a_mount_none_of_whose_topics_can_be_had_says_nothing_of_those_of_others(
    world: World, posts: HttpInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    crm = of_crm_alone(world)
    with monkeypatch.context() as patch:
        refuse(patch, "crm.")
        ticks(crm, 5)
        assert told(posts) == [("began", "unreadable", "crm.users")]
    ticks(crm, 3)
    assert told(posts)[1:] == [("cleared", "unreadable", "crm.users")]


def test_a_mount_of_a_home_none_of_whose_topics_can_be_had_says_that_of_all(
    world: World, posts: HttpInbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    crm = of_crm_alone(world)
    refuse(monkeypatch, "")
    ticks(crm, 3)
    assert told(posts) == [("began", "catalog", "all topics")]


def of_crm_alone(world: World) -> CrmAlone:
    """A mount that looks after one of two topics."""
    for topic in ("crm.users", "sales.orders"):
        world.topic(topic)
        world.append(topic, ("a", "1"))
    return CrmAlone(world.path, world.instance, world.now_ms)


def refuse(patch: pytest.MonkeyPatch, prefix: str) -> None:
    """Let no topic be read whose name begins so."""
    really = LogStore.observe

    def observe(store: LogStore, topic: str, *given: Any) -> ObservedTopic:
        if topic.startswith(prefix):
            raise StorageUnavailable(f"{topic} can't be read: access is denied")
        return really(store, topic, *given)

    patch.setattr(LogStore, "observe", observe)


def test_a_mount_of_some_topics_says_that_a_broker_is_over_only_once_that_has_answered(
    posts: HttpInbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ingest_world(tmp_path / "home") as here:
        here.knows("crm.users", 0)
        here.produce("crm.users", ("a", "1"))
        here.knows("sales.orders", 0, bootstrap="127.0.0.1:1")
        crm = CrmAlone(here.world.path, here.world.instance, here.world.now_ms, more_resources={})
        with monkeypatch.context() as patch:
            patch.setattr(lag, "_look", lambda *_: StorageUnavailable("nobody answers"))
            heard(here.world, 3)
            assert {each[::2] for each in told(posts)} == {("began", here.broker.bootstrap), ("began", "127.0.0.1:1")}
            crm.now_ms = here.world.now_ms
            heard(crm, 3)
        heard(crm, 3)
        assert [each[::2] for each in told(posts)[2:]] == [("cleared", here.broker.bootstrap)]


def test_a_mount_of_some_topics_says_that_a_broker_is_over_once_no_topic_of_the_home_comes_from_it(
    posts: HttpInbox, tmp_path: Path
) -> None:
    gone, of_others = "127.0.0.1:1", "127.0.0.1:2"
    with ingest_world(tmp_path / "home") as here:
        here.knows("crm.users", 0, bootstrap=gone)
        here.knows("sales.orders", 0, bootstrap=of_others)
        heard(here.world, 3)
        assert {each[::2] for each in told(posts)} == {("began", gone), ("began", of_others)}
        here.world.store.delete_topic("crm.users", here.world.now_ms)
        crm = CrmAlone(here.world.path, here.world.instance, here.world.now_ms, more_resources={})
        heard(crm, 3)
        assert [each[::2] for each in told(posts)[2:]] == [("cleared", gone)]
        here.world.store.delete_topic("sales.orders", crm.now_ms)
        here.knows("crm.users", 0, bootstrap=here.broker.bootstrap)
        here.produce("crm.users", ("a", "1"))
        heard(crm, 3)
        assert [each[::2] for each in told(posts)[3:]] == [("cleared", of_others)]


def heard(world: World, count: int) -> None:
    """Ticks of the sensor, minutes apart, each just after that of the sensor that asks brokers."""
    for _ in range(count):
        world.now_ms += 2 * MINUTE_MS
        world.reopen()
        world.tick(ingest_lag_sensor)
        world.tick(notify_sensor)


def test_a_home_that_cannot_be_opened_is_told_once_it_lasts(world: World, posts: HttpInbox) -> None:
    world.topic("users")
    (world.path / "catalog.db").write_bytes(b"this is no database" * 1000)
    ticks(world, 3)
    assert told(posts) == [("began", "catalog", "all topics")]


def test_broker_settings_with_which_nothing_is_cleaned_are_told_once_they_last(world: World, posts: HttpInbox) -> None:
    world.topic("users")
    (world.path / "server.properties").write_text("log.cleaner.threads=many\n")
    ticks(world, 3)
    assert told(posts) == [("began", "catalog", "all topics")]
    assert "log.cleaner.threads" in posts.taken[0]["text"]
    (world.path / "server.properties").unlink()
    ticks(world, 3)
    assert told(posts)[1:] == [("cleared", "catalog", "all topics")]


def test_it_says_in_every_tick_that_nobody_knows_what_verify_has_found(world: World, posts: HttpInbox) -> None:
    world.topic("users")
    checks_file(world.path).parent.mkdir()
    checks_file(world.path).write_text('{"users-0"')
    leave_checks(world.path, {"users-0": {"G1": "a segment is gone"}})
    for said in ticks(world, 2):
        assert said.startswith(f"0 conditions, 0 messages sent; not known: {checks_file(world.path)}: it is damaged")


def test_nothing_is_over_where_nobody_says_where_the_catalog_is(
    world: World, posts: HttpInbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As in a daemon without the ``PYICEBERG_`` variables: the home has what is remembered, and nothing else."""
    world.topic("users")
    world.append("users", ("a", "1"), ("a", "2"))
    world.break_segment("users")
    clean(world)
    ticks(world, 1)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for path in list(world.path.iterdir()):
        if path.name != "notify":
            path.rename(elsewhere / path.name)
    assert ticks(world, 4) == ["1 condition, 0 messages sent"] * 4
    assert told(posts) == [("began", "uncleanable", "users-0")]


def test_what_the_ingest_sensor_has_heard_is_told(posts: HttpInbox, tmp_path: Path) -> None:
    with ingest_world(tmp_path / "home") as here:
        here.knows("users", 10)
        here.produce("users", ("a", "1"))
        here.world.tick(notify_sensor)
        assert told(posts) == []
        here.world.tick(ingest_lag_sensor)
        here.world.tick(notify_sensor)
    assert told(posts) == [("began", "stopped ingest", "users-0")]


def test_every_cleaning_sensor_leaves_its_tick_in_the_home(world: World) -> None:
    world.topic("users")
    for sensor in CLEAN_SENSORS:
        world.now_ms += MINUTE_MS
        world.tick(sensor)
        (left,) = last_ticks(world.path)
        assert isinstance(left, LastTick)
        assert (left.sensors, left.at_ms, left.interval_ms) == (
            "the cleaning sensors of keptlog",
            world.now_ms,
            30_000,
        )


def test_a_tick_that_fails_for_its_catalog_is_a_tick_all_the_same(world: World) -> None:
    world.topic("users")
    (world.path / "catalog.db").write_bytes(b"this is no database" * 1000)
    world.reopen()
    with pytest.raises(StorageUnavailable):
        world.tick(CLEAN_SENSORS[0])
    assert last_ticks(world.path)


def test_a_tick_that_fails_for_what_nobody_else_may_tell_is_none(world: World) -> None:
    """As where a variable of the sensors' process alone is wrong."""
    world.topic("users")
    (world.path / "server.properties").write_text("log.cleaner.threads=many\n")
    world.reopen()
    with pytest.raises(InvalidConfig):
        world.tick(CLEAN_SENSORS[0])
    assert not last_ticks(world.path)


def test_a_cleaning_sensor_that_fails_alone_is_told_although_the_others_tick(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.topic("users")

    def fails(*_: object) -> None:
        raise ValueError("a project's code can't do this")

    monkeypatch.setattr("keptlog.dagster.orchestration.clean_sensors.first_looks", fails)
    failing = SENSORS["dirty_ratio_sensor"]
    for _ in range(12):
        world.now_ms += MINUTE_MS
        for sensor in CLEAN_SENSORS:
            if sensor is not failing:
                world.tick(sensor)
        with pytest.raises(ValueError, match="project's code"):
            world.tick(failing)
    assert [each.subject for each in tick_evidence(world.path, world.now_ms, Thresholds()).conditions] == [failing.name]
    monkeypatch.undo()
    world.tick(failing)
    assert not tick_evidence(world.path, world.now_ms, Thresholds()).conditions
