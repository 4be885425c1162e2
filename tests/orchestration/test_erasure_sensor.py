"""The sensor of erasures: each pass early enough for its deadline and no sooner, asked once; a quiet tick is free."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import dagster as dg
import pytest
from dagster_pyspark import LazyPySparkResource

from keptlog.dagster.assets.names import CLEAN_JOB
from keptlog.dagster.orchestration.erasure_looks import LOOK_AGAIN_MS
from keptlog.dagster.orchestration.own_runs import PURGE_JOB_NAME, VERIFY_ERASURES_JOB_NAME
from keptlog.log.broker import CLEANER_DISABLED
from keptlog.log.erasures.erasure import Erasure, ErasureBound, ErasureState, ReachedState
from keptlog.log.erasures.erasure_schedule import ALLOWANCE_MS, VERIFIED_WITHIN_MS
from keptlog.log.erasures.open_erasures import ErasureNeed
from keptlog.log.topic_partition import TopicPartition
from keptlog.table.changes.erasures import RegisterChange
from keptlog.table.store import LogStore
from tests.erasure.world import new_id
from tests.orchestration.conftest import HOUR_MS, World
from tests.orchestration.erasing import KEY, SETTINGS, ask, asked_for, due, need, passes, topic_with_the_key
from tests.orchestration.shipped import (
    DEADLINE_CHECK,
    ERASURES_KEY,
    erasure_sensor,
    max_compaction_lag_sensor,
)

MINUTE_MS = 60_000


@pytest.fixture
def users(world: World) -> str:
    return topic_with_the_key(world)


def test_without_erasures_nothing_is_asked_for_or_told(world: World, users: str) -> None:
    result = world.tick(erasure_sensor)
    assert result.skip_reason
    assert result.skip_reason.skip_message == "no erasure is open"
    assert (result.run_requests, result.asset_events) == ([], [])


def test_an_empty_home_is_quiet(world: World) -> None:
    assert world.skips(erasure_sensor) == "no erasure is open"


def test_a_clean_is_asked_for_when_the_deadline_needs_it_and_not_before(world: World, users: str) -> None:
    ask(world, by_ms=10 * HOUR_MS)
    assert need(world) == ErasureNeed.CLEAN
    # A clean, an hour of delete retention, a clean, a purge and a verification, each with its allowance.
    at_the_latest_ms = world.now_ms + 10 * HOUR_MS - HOUR_MS - 4 * ALLOWANCE_MS

    world.now_ms = at_the_latest_ms - 1
    why = world.skips(erasure_sensor)
    assert "1 erasure open in 1 topic, none overdue" in why
    assert "users: 1 erasure waiting for a clean, asked for at " in why
    world.now_ms = at_the_latest_ms
    (request,) = world.requests(erasure_sensor)

    config: Any = request.run_config
    assert request.job_name == CLEAN_JOB
    assert config["ops"]["plan"]["config"] == {"logs": ["users-0"], "requested": True}
    assert (request.tags["keptlog/trigger"], request.tags["dagster/priority"]) == ("erasure", "10")


def test_of_many_topics_that_wait_the_first_are_told_and_how_many_others_there_are(world: World, users: str) -> None:
    topics = [users, *(f"users-of-{number}" for number in range(5))]
    for topic in topics[1:]:
        world.topic(topic, 1, **SETTINGS)
        world.append(topic, (KEY, "1"), age_ms=0)
    ask(world, *topics, by_ms=10 * HOUR_MS)
    told = world.skips(erasure_sensor).split("; ")
    assert told[0] == "6 erasures open in 6 topics, none overdue"
    assert [": 1 erasure waiting for a clean" in each for each in told[1:4]] == [True] * 3
    assert told[4:] == ["and 3 more"]


def test_how_long_the_last_clean_took_counts_twice_for_each_clean(world: World, users: str) -> None:
    passes(world).clean()
    lasted_ms = 40 * MINUTE_MS
    table = world.store.load_table("users")
    name = "log.p0.last-pass"
    text = f'{{"ended_ms":1,"duration_ms":{lasted_ms},"bytes_read":0,"bytes_written":0,"map_keys":0,"map_slots":1}}'
    table.transaction().set_properties({name: text}).commit_transaction()
    ask(world, by_ms=10 * HOUR_MS)
    world.now_ms += 9 * HOUR_MS - 4 * ALLOWANCE_MS - 4 * lasted_ms
    assert len(world.requests(erasure_sensor)) == 1
    world.now_ms -= 1
    assert world.requests(erasure_sensor) == []


def test_a_clean_that_can_do_nothing_yet_is_not_asked_for(world: World, users: str) -> None:
    ask(world, by_ms=HOUR_MS)  # earlier than can be: the segment is active
    assert "which can do nothing yet" in world.skips(erasure_sensor)


def test_no_clean_is_asked_for_where_nothing_is_compacted_any_more(world: World, users: str) -> None:
    """One was asked for every ten minutes, each left the topic alone."""
    due(world)
    world.store.alter_topic("users", {"cleanup.policy": "delete"})
    assert world.requests(erasure_sensor) == []
    assert "users: 1 erasure waiting for retention, deadline " in world.skips(erasure_sensor)
    world.store.alter_topic("users", {"cleanup.policy": "compact"})
    assert [asked_for(each) for each in world.requests(erasure_sensor)] == [["users-0"]]


def test_a_cleaner_that_is_off_is_no_reason_where_nothing_is_compacted_any_more(world: World, users: str) -> None:
    """It was told as what keeps an erasure, to which no clean comes with the cleaner on either."""
    due(world)
    (world.path / "server.properties").write_text("log.cleaner.enable=false")
    world.reopen()
    assert CLEANER_DISABLED in world.skips(erasure_sensor)
    world.store.alter_topic("users", {"cleanup.policy": "delete"})
    assert CLEANER_DISABLED not in world.skips(erasure_sensor)


def test_each_state_is_brought_on_by_the_run_it_needs(world: World, users: str) -> None:
    ask(world, by_ms=HOUR_MS)  # which can't be held: all is asked for as soon as it helps

    def next_request() -> tuple[str | None, list[str]]:
        (request,) = world.requests(erasure_sensor)
        return request.job_name, asked_for(request)

    world.now_ms += 2 * HOUR_MS
    assert next_request() == (CLEAN_JOB, ["users-0"])
    passes(world).clean()
    world.now_ms += LOOK_AGAIN_MS
    assert "the expiry of tombstones, which can do nothing yet" in world.skips(erasure_sensor)
    world.now_ms += HOUR_MS
    assert next_request() == (CLEAN_JOB, ["users-0"])
    passes(world).clean()
    world.now_ms += LOOK_AGAIN_MS
    assert next_request() == (PURGE_JOB_NAME, ["users"])
    passes(world).purge()
    world.log_store.eraser().advance(now_ms=world.now_ms)
    assert next_request() == (VERIFY_ERASURES_JOB_NAME, ["users"])


def test_without_a_deadline_only_the_verification_is_asked_for(world: World) -> None:
    world.now_ms = time.time_ns() // 1_000_000
    world.topic("users", 1, **(SETTINGS | {"max_compaction_lag_ms": str(2**63 - 1), "segment_ms": str(HOUR_MS)}))
    world.append("users", (KEY, "1"), age_ms=0)
    ask(world)
    for _ in range(2):
        world.now_ms += 2 * HOUR_MS
        assert world.requests(erasure_sensor) == []
        passes(world).clean()
        world.log_store.eraser().advance(now_ms=world.now_ms)
    passes(world).purge()
    world.log_store.eraser().advance(now_ms=world.now_ms)
    assert need(world) == ErasureNeed.VERIFICATION
    assert world.requests(erasure_sensor) == []
    world.now_ms += VERIFIED_WITHIN_MS

    (request,) = world.requests(erasure_sensor)

    assert request.job_name == VERIFY_ERASURES_JOB_NAME


def test_a_log_that_failed_lately_is_left_to_its_own_back_off(world: World, users: str) -> None:
    due(world)
    table = world.store.load_table("users")
    mark = f'{{"reason":"no space","since_ms":1,"attempts":1,"retry_at_ms":{world.now_ms + 1}}}'
    table.transaction().set_properties({"log.p0.uncleanable": mark}).commit_transaction()
    assert world.requests(erasure_sensor) == []
    world.now_ms += 1
    assert len(world.requests(erasure_sensor)) == 1


def test_a_log_that_failed_by_a_clock_that_is_years_ahead_is_cleaned_for_its_erasure(world: World, users: str) -> None:
    due(world)
    ahead_ms = world.now_ms + 365 * 24 * HOUR_MS
    mark = f'{{"reason":"no space","since_ms":1,"attempts":2,"retry_at_ms":{ahead_ms},"wait_ms":30000}}'
    world.store.load_table("users").transaction().set_properties({"log.p0.uncleanable": mark}).commit_transaction()
    assert len(world.requests(erasure_sensor)) == 1


def test_while_spark_is_down_nothing_that_needs_it_is_asked_for(world: World, users: str) -> None:
    due(world)
    world.more_resources["spark"] = LazyPySparkResource(spark_config={"spark.remote": "sc://127.0.0.1:1"})
    assert "until then 1 topic will wait" in world.skips(erasure_sensor)
    del world.more_resources["spark"]
    assert len(world.requests(erasure_sensor)) == 1


def test_a_disabled_cleaner_is_told_and_not_asked(world: World, users: str) -> None:
    due(world)
    (world.path / "server.properties").write_text("log.cleaner.enable=false")
    world.reopen()
    assert "log.cleaner.enable=false" in world.skips(erasure_sensor)


class _Errors:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def error(self, text: str, *values: object) -> None:
        self.lines.append(text % values)


@pytest.fixture
def errors(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What ticks log as errors."""
    log = _Errors()
    monkeypatch.setattr(dg.SensorEvaluationContext, "log", property(lambda _: log))
    return log.lines


def test_an_overdue_erasure_is_an_error_in_every_tick_and_fails_the_check(
    world: World, users: str, errors: list[str]
) -> None:
    ask(world, by_ms=HOUR_MS)
    world.tick(erasure_sensor)
    assert errors == []
    world.now_ms += HOUR_MS + 1

    result = world.tick(erasure_sensor)

    (line,) = errors
    assert line.startswith("users: 1 erasure overdue, the first since ")
    observation, evaluation = result.asset_events
    assert isinstance(observation, dg.AssetObservation)
    assert isinstance(evaluation, dg.AssetCheckEvaluation)
    assert (observation.asset_key, evaluation.asset_check_key) == (ERASURES_KEY, DEADLINE_CHECK)
    assert (evaluation.passed, evaluation.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert "| users | 1 | 1 |" in str(observation.metadata["topics"].value)
    assert world.tick(erasure_sensor).asset_events == [], "told once"
    assert len(errors) == 2, "and said in every tick"


def test_a_topic_that_can_not_be_read_costs_only_itself(world: World, users: str) -> None:
    world.topic("odd", 1, **SETTINGS)
    due(world)
    world.store.load_table("odd").transaction().set_properties({"log.p0.log-end-offset": "many"}).commit_transaction()

    result = world.tick(erasure_sensor)

    assert len(result.run_requests or []) == 1
    (evaluation,) = [each for each in result.asset_events if isinstance(each, dg.AssetCheckEvaluation)]
    assert (evaluation.passed, evaluation.severity) == (False, dg.AssetCheckSeverity.WARN)


def test_what_was_cleaned_elsewhere_is_seen_by_the_next_tick(world: World, users: str) -> None:
    due(world)
    passes(world).clean()
    assert need(world) == ErasureNeed.CLEAN

    world.tick(erasure_sensor)

    assert need(world) == ErasureNeed.EXPIRY


def test_a_large_topic_is_looked_at_in_a_run_of_its_own(
    world: World, users: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import keptlog.dagster.orchestration.erasure_looks as module  # noqa: PLC0415

    monkeypatch.setattr(module, "LARGE_BYTES", 1)
    due(world)
    passes(world).clean()
    (request,) = world.requests(erasure_sensor)
    assert (request.job_name, asked_for(request)) == (VERIFY_ERASURES_JOB_NAME, ["users"])
    assert need(world) == ErasureNeed.CLEAN
    assert "looked" not in world.skips(erasure_sensor)


def test_a_verification_is_asked_for_in_time_though_a_clock_that_was_ahead_has_dated_its_state(
    world: World, users: str
) -> None:
    ask(world, by_ms=30 * 24 * HOUR_MS)
    elsewhere = passes(world)
    elsewhere.bring_on()
    elsewhere.eraser.advance(now_ms=elsewhere.now_ms + 400 * 24 * HOUR_MS)
    assert need(world) == ErasureNeed.VERIFICATION
    world.now_ms = elsewhere.now_ms
    assert "waiting for a verification, asked for at" in world.skips(erasure_sensor)
    assert world.store.observe("users").erasures.needs[0].since_ms <= world.now_ms
    world.now_ms += VERIFIED_WITHIN_MS
    [request] = world.requests(erasure_sensor)
    assert request.job_name == VERIFY_ERASURES_JOB_NAME


def planted(world: World, topic: str, count: int) -> None:
    """So many open requests with different deadlines in one commit, none of which can be brought on yet."""
    world.topic(topic, 1, **SETTINGS)
    described, store = world.store.describe_topic(topic), world.store
    asked = ReachedState(ErasureState.REQUESTED.value, world.now_ms)
    done = ReachedState(ErasureState.TOMBSTONED.value, world.now_ms)
    erasures = tuple(
        Erasure(
            f"r{number}",
            "tombstone",
            world.now_ms,
            world.now_ms + 24 * HOUR_MS + number,
            "",
            "0" * 16,
            (f"{number:064x}",),
            (ErasureBound(0, number, number + 1),),
            reached=(asked, done),
        )
        for number in range(count)
    )
    change = RegisterChange(described, store.committer, store.files, new_id, world.now_ms)
    change._change("planted", lambda _table, _known: erasures, lambda _: world.now_ms + HOUR_MS, since=None)


def test_a_quiet_tick_reads_no_more_than_that_of_another_sensor(
    world: World, users: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        planted(world, f"t{number}", 100)
    reads: Counter[str] = Counter()

    def counting(name: str) -> None:
        real = getattr(LogStore, name)

        def counted(self: LogStore, *args: Any) -> Any:
            reads[name] += 1
            return real(self, *args)

        monkeypatch.setattr(LogStore, name, counted)

    for name in ("metadata_locations", "load_table", "observe", "topics", "logs"):
        counting(name)
    files = type(world.store.files)
    real_read = files.read_bytes
    monkeypatch.setattr(files, "read_bytes", lambda self, path: reads.update(["file"]) or real_read(self, path))

    first = world.tick(erasure_sensor)
    assert reads["observe"] >= 6
    assert "500 erasures open in 5 topics, none overdue" in str(first.skip_reason)
    reads.clear()
    world.tick(max_compaction_lag_sensor)
    of_another = dict(reads)
    reads.clear()
    quiet = world.tick(erasure_sensor)

    assert dict(reads) == of_another == {"metadata_locations": 1}
    assert quiet.asset_events == []


def test_a_quiet_tick_sees_a_deadline_that_passes_and_a_request_that_comes(
    world: World, users: str, errors: list[str]
) -> None:
    planted(world, "t0", 3)
    (world.path / "erasure.secret").write_text("ab" * 32)
    world.tick(erasure_sensor)
    assert "3 erasures open in 1 topic, none overdue" in world.skips(erasure_sensor)
    ask(world, by_ms=5 * HOUR_MS)
    assert "4 erasures open in 2 topics, none overdue" in world.skips(erasure_sensor)
    world.now_ms += 5 * HOUR_MS + 1
    world.tick(erasure_sensor)
    assert [line.partition(",")[0] for line in errors] == ["users: 1 erasure overdue"]


def shown_needs(world: World) -> tuple[str, str] | None:
    """What a tick tells that the erasures of users need: in the table of topics, and in the check; null if nothing."""
    events = world.tick(erasure_sensor).asset_events
    if not events:
        return None
    observation, evaluation = events
    assert isinstance(observation, dg.AssetObservation)
    assert isinstance(evaluation, dg.AssetCheckEvaluation)
    [row] = [line for line in str(observation.metadata["topics"].value).splitlines() if line.startswith("| users |")]
    return row.split(" | ")[-1].removesuffix(" |"), evaluation.description or ""


@pytest.mark.parametrize("by_ms", [90 * 24 * HOUR_MS, MINUTE_MS], ids=["in time", "overdue"])
def test_what_erasures_need_is_told_anew_once_the_clock_brings_them_on(world: World, users: str, by_ms: int) -> None:
    """The table of topics, and the check of an overdue one, told for good that nothing brings them on before then."""
    ask(world, by_ms=by_ms)
    world.now_ms += 2 * MINUTE_MS
    kept, of_kept = shown_needs(world) or ("", "")
    assert kept.startswith("nothing brings it on before ")
    world.now_ms += LOOK_AGAIN_MS
    assert shown_needs(world) is None
    world.now_ms += HOUR_MS
    by_now, of_now = shown_needs(world) or ("", "")
    assert by_now == "clean"
    if by_ms == MINUTE_MS:
        assert ("(nothing brings it on before " in of_kept, "(needs clean)" in of_now) == (True, True)
    world.now_ms += LOOK_AGAIN_MS
    assert shown_needs(world) is None


def test_what_erasures_need_is_told_anew_once_their_log_is_emptied(world: World, users: str) -> None:
    ask(world, by_ms=90 * 24 * HOUR_MS)
    assert (shown_needs(world) or ("",))[0].startswith("nothing brings it on before ")
    world.now_ms += MINUTE_MS
    world.store.delete_records(TopicPartition(users, 0), -1, new_id())
    # The tick that sees it has looked itself.
    assert (shown_needs(world) or ("",))[0] == "purge"
    world.now_ms += MINUTE_MS
    assert shown_needs(world) is None
