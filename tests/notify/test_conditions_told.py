"""``keptlog notify`` tells of each kind of condition, and that it is over only where it has looked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from keptlog.home import new_id
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.notify.checks import leave_checks
from keptlog.notify.ticks import leave_tick
from keptlog.table.metadata.state import SOURCE
from tests.broken_topics import BREAKAGES
from tests.mock_broker import MockBroker, mock_broker
from tests.notify.conftest import MINUTE_MS, SETTINGS, Scene, told
from tests.notify.servers import HttpInbox
from tests.table.foreign import insert, set_properties


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


def test_with_the_cleaner_off_notify_and_doctor_say_that_it_is_to_be_switched_on(scene: Scene) -> None:
    scene.topic()
    scene.break_log()
    (scene.home / "server.properties").write_text("log.cleaner.enable=false")
    scene.environment.setenv("KEPTLOG_NOTIFY_ATTEMPTS", "1")
    scene.notify("--dry-run")
    told = scene.notify("--dry-run")
    assert "users-0 is uncleanable" in told.out
    assert "next try at" not in told.out
    examined = scene.keptlog("doctor")
    assert "users-0 is uncleanable" in examined.out
    assert "take log.cleaner.enable=false out of the broker settings" in examined.out
    assert "keptlog clean users-0" not in examined.out


def test_broker_settings_with_which_nothing_is_cleaned_are_told(scene: Scene, posts: HttpInbox) -> None:
    scene.topic()
    scene.break_log()
    scene.notify()
    (scene.home / "server.properties").write_text("log.cleaner.threads=many")
    outcomes = [scene.notify() for _ in range(3)]
    assert [each.code for each in outcomes] == [0] * 3
    assert "log.cleaner.threads" in outcomes[0].err
    assert told(posts) == [("began", "uncleanable", "users-0"), ("began", "catalog", "all topics")]


def test_a_dry_run_shows_such_settings_as_what_is_wrong(scene: Scene, posts: HttpInbox) -> None:
    scene.topic()
    (scene.home / "server.properties").write_text("log.cleaner.threads=many")
    shown = scene.notify("--dry-run")
    assert shown.code == 1
    assert "no log can be cleaned: broker settings" in shown.out
    assert told(posts) == []


def test_who_looks_again_and_again_goes_on_with_such_settings(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.topic()
    (scene.home / "server.properties").write_text("log.cleaner.threads=many")
    scene.environment.setenv("KEPTLOG_NOTIFY_LOG", "true")
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("keptlog.cli.notify.sleep", sleep)
    scene.notify("--every", "7")
    assert slept == [7, 7]


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


@pytest.mark.parametrize("has_dagster", [True, False])
def test_who_knows_of_no_spark_says_of_none_that_it_is_back_where_dagster_may_know_one(
    scene: Scene, posts: HttpInbox, *, has_dagster: bool
) -> None:
    scene.topic()
    if has_dagster:
        leave_tick(scene.home, "crm_", scene.now_ms, 10**9)
    scene.environment.setenv("KEPTLOG_SPARK_MASTER", "sc://127.0.0.1:1")
    for _ in range(2):
        scene.notify()
    scene.environment.delenv("KEPTLOG_SPARK_MASTER")
    for _ in range(3):
        scene.notify()
    assert [each[:2] for each in told(posts)] == [("began", "spark"), *[("cleared", "spark")] * (not has_dagster)]


@pytest.mark.parametrize("address", ["sc://127.0.0.1:1/;token=planted-connect-token", "", None])
def test_a_spark_server_whose_address_is_kept_in_a_file_is_told_too(
    scene: Scene, posts: HttpInbox, tmp_path: Path, address: str | None
) -> None:
    """It is gone, its file is empty, or it has left none."""
    scene.topic()
    file = tmp_path / "spark-address"
    if address is not None:
        file.write_text(address)
        file.chmod(0o600)
    scene.environment.setenv("KEPTLOG_SPARK_MASTER", f"file:{file}")
    assert [scene.notify().code for _ in range(2)] == [0, 0]
    assert told(posts) == [("began", "spark", "all topics")]
    assert "planted-connect-token" not in json.dumps(posts.posts)


def test_spark_settings_that_nobody_can_read_cost_only_themselves(scene: Scene, posts: HttpInbox) -> None:
    scene.topic()
    scene.break_log()
    (scene.home / "spark.properties").write_text("executors 3\n")
    outcomes = [scene.notify() for _ in range(2)]
    assert [(each.code, each.err) for each in outcomes] == [(0, "")] * 2
    assert sorted(told(posts)) == [("began", "spark", "all topics"), ("began", "uncleanable", "users-0")]
    assert "spark.properties line 1 is not spark.name=value" in json.dumps(posts.posts)


def test_a_spark_cluster_that_is_gone_is_told(scene: Scene, posts: HttpInbox) -> None:
    scene.topic()
    scene.environment.setenv("KEPTLOG_SPARK_MASTER", "spark://127.0.0.1:1")
    assert [scene.notify().code for _ in range(2)] == [0, 0]
    assert told(posts) == [("began", "spark", "all topics")]


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


def test_a_partition_without_a_leader_is_told_if_that_lasts(scene: Scene, posts: HttpInbox) -> None:
    with mock_broker() as broker:
        broker.produce("users", ("a", "1"))
        knows(scene, broker, 0)
        broker.lose_leader("users", 1)
        scene.notify()
        assert not told(posts)
        scene.notify()
        assert told(posts) == [("began", "stopped ingest", "users-1")]
        broker.elect_leader("users", 1)
        scene.notify()
        scene.notify()
        assert told(posts)[1:] == [("cleared", "stopped ingest", "users-1")]


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
    """A topic here that has read ten offsets of a log that has one."""
    broker.produce("users", ("a", "1"))
    knows(scene, broker, 10)


def knows(scene: Scene, broker: MockBroker, position: int) -> None:
    """A topic here that comes from the broker, and has read so far."""
    scene.store.create_topic("users", 4, SETTINGS)
    source = SourceIdentity("users", bootstrap=broker.bootstrap)
    scene.store.ingest("users", [Arrival(OffsetRange(0, None, 0, position), ())], source, 4, new_id())


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


def test_a_broker_is_over_too_where_the_only_topic_that_has_it_may_not_be_written_to(
    scene: Scene, posts: HttpInbox
) -> None:
    with mock_broker() as broker:
        cut_off(scene, broker)
        address, source = broker.bootstrap, scene.store.load_table("users").properties[SOURCE]
        del broker
    scene.notify()
    scene.notify()
    insert(scene.home, 50, topic="users")
    with mock_broker() as broker:
        set_properties(scene.home, {SOURCE: source.replace(address, broker.bootstrap)}, topic="users")
        for _ in range(4):
            scene.notify()
    assert {("began", "broker"), ("began", "unreadable"), ("cleared", "broker")} == {each[:2] for each in told(posts)}
