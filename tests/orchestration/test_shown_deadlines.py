"""Dagster shows the check of deadlines as it is, whatever became of a run that was to evaluate it."""

import asyncio
import itertools
import time
from collections.abc import Callable, Iterable
from typing import Any

import dagster as dg
import pytest
from dagster._core.loader import LoadingContextForTest

from keptlog.dagster.assets import erasures
from keptlog.dagster.assets.mount import Mount, MountCall
from keptlog.dagster.orchestration import erasure_looks
from keptlog.dagster.orchestration.erasure_looks import LOOK_AGAIN_MS
from keptlog.dagster.orchestration.own_runs import VERIFY_ERASURES_JOB_NAME
from keptlog.errors import StorageUnavailable
from keptlog.passes.erasures.erase import Eraser
from keptlog.passes.erasures.erasure_request import ErasureList
from tests.orchestration.conftest import DAY_MS, HOUR_MS, World
from tests.orchestration.erasing import KEY, SETTINGS, ask, asked_for, topic_with_the_key
from tests.orchestration.shipped import DEADLINE_CHECK, ERASURES_KEY, erasure_sensor
from tests.orchestration.test_siblings import HERE

TICK_MS = 30_000
OUTAGE = "the storage of users does not answer"


@pytest.fixture
def users(world: World) -> World:
    topic_with_the_key(world)
    return world


@pytest.fixture
def overdue(users: World) -> World:
    """An erasure behind its deadline, of which Dagster was told."""
    ask(users, by_ms=HOUR_MS)
    users.now_ms += 2 * HOUR_MS
    users.tick(erasure_sensor)
    assert shown(users) == "FAILED"
    return users


@pytest.fixture
def in_time(users: World) -> World:
    """An erasure long before its deadline, of which Dagster was told; and a tick that had nothing to do."""
    ask(users, by_ms=90 * DAY_MS)
    ticks(users, 3)
    assert shown(users) == "SUCCEEDED"
    return users


@pytest.fixture
def many(world: World) -> World:
    return with_many(world)


def with_many(world: World) -> World:
    """Three topics with an erasure each, long before its deadline, of which Dagster was told."""
    world.now_ms = time.time_ns() // 1_000_000  # as runs of Dagster have it
    for topic in "abc":
        world.topic(topic, 1, **SETTINGS)
        world.append(topic, (KEY, "1"), ("other", "1"), age_ms=0)
    ask(world, *"abc", by_ms=90 * DAY_MS)
    ticks(world, 3)
    assert shown(world) == "SUCCEEDED"
    return world


def shown(world: World) -> str | None:
    """What Dagster's pages show of the check."""
    storage = world.instance.event_log_storage
    newest = storage.get_latest_asset_check_execution_by_key([DEADLINE_CHECK]).get(DEADLINE_CHECK)
    return asyncio.run(newest.resolve_status(LoadingContextForTest(world.instance))).value if newest else None


def said(world: World) -> str:
    [newest] = world.instance.event_log_storage.get_asset_check_execution_history(DEADLINE_CHECK, limit=1)
    assert newest.evaluation
    return newest.evaluation.description or ""


def ticks(world: World, count: int, apart_ms: int = TICK_MS) -> int:
    """So many ticks; gives how often they told something."""
    told = 0
    for _ in range(count):
        world.now_ms += apart_ms
        told += bool(world.tick(erasure_sensor).asset_events)
    return told


def told_that_a_clean_is_needed(world: World) -> None:
    """What erasures need is told anew once segments are closed; from then on the clock alone changes nothing of it."""
    assert ticks(world, 2, HOUR_MS) == 1


def queued(world: World) -> dg.DagsterRun:
    """A run of the asset by hand that waits in Dagster's queue."""
    job = world.defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection={ERASURES_KEY})
    return world.instance.create_run_for_job(
        job, asset_selection=frozenset([ERASURES_KEY]), status=dg.DagsterRunStatus.QUEUED, remote_job_origin=HERE
    )


def by_hand(world: World) -> bool:
    job = world.defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection={ERASURES_KEY})
    return job.execute_in_process(instance=world.instance, raise_on_error=False).success


@pytest.mark.parametrize("end", ["cancelled", "deleted", "waiting"])
def test_an_overdue_erasure_is_shown_at_the_next_tick_though_a_run_by_hand_has_not_evaluated(
    overdue: World, end: str
) -> None:
    run = queued(overdue)
    if end == "cancelled":
        overdue.instance.report_run_canceled(run)
    if end == "deleted":
        overdue.instance.delete_run(run.run_id)
    assert shown(overdue) != "FAILED"

    assert ticks(overdue, 3) == 1

    assert shown(overdue) == "FAILED"


def test_an_overdue_erasure_is_shown_at_the_next_tick_after_the_asset_was_wiped(overdue: World) -> None:
    overdue.instance.wipe_assets([ERASURES_KEY])
    assert shown(overdue) is None

    assert ticks(overdue, 3) == 1

    assert shown(overdue) == "FAILED"
    assert overdue.instance.fetch_observations(ERASURES_KEY, limit=1).records


def test_a_tick_that_has_nothing_else_to_do_sees_too_what_is_not_shown(in_time: World) -> None:
    in_time.instance.report_run_canceled(queued(in_time))
    assert shown(in_time) == "SKIPPED"

    assert ticks(in_time, 3) == 1

    assert shown(in_time) == "SUCCEEDED"


def test_what_a_run_by_hand_finds_is_shown_though_a_tick_has_told_the_check_while_it_waited(
    in_time: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = erasures.look_at_erasures

    def look_later(*given: object, **named: object) -> erasures.ErasureNews:
        assert ticks(in_time, 1) == 1
        in_time.now_ms += 91 * DAY_MS
        return really(given[0], in_time.now_ms)  # type: ignore[arg-type]

    monkeypatch.setattr(erasures, "look_at_erasures", look_later)
    assert by_hand(in_time)
    assert shown(in_time) == "FAILED"


def test_what_a_run_could_not_look_at_for_a_moment_warns_until_a_tick_has_looked(
    in_time: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as outage:
        outage.setattr(Eraser, "list", _does_not_answer)
        outage.setattr(Eraser, "advance", _does_not_answer)
        assert by_hand(in_time)
        assert said(in_time) == f"not looked at: users: {OUTAGE}"
        ticks(in_time, 1)

    ticks(in_time, 2)
    assert said(in_time) == f"not looked at: users: {OUTAGE}", "nobody has looked since"
    in_time.now_ms += LOOK_AGAIN_MS
    assert ticks(in_time, 3) == 1

    assert (shown(in_time), said(in_time)) == ("SUCCEEDED", "")


def test_what_a_tick_can_not_look_at_either_goes_on_to_warn_and_is_told_once(
    in_time: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_that_a_clean_is_needed(in_time)
    monkeypatch.setattr(Eraser, "list", _does_not_answer)
    monkeypatch.setattr(Eraser, "advance", _does_not_answer)
    assert by_hand(in_time)

    assert ticks(in_time, 10, LOOK_AGAIN_MS) == 1

    assert (shown(in_time), said(in_time)) == ("FAILED", f"not looked at: users: {OUTAGE}")


def test_a_large_topic_that_a_run_could_not_look_at_is_looked_at_in_one_more_run_an_hour(
    in_time: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure_looks, "LARGE_BYTES", 1)
    with monkeypatch.context() as outage:
        outage.setattr(Eraser, "list", _does_not_answer)
        assert by_hand(in_time)
    in_time.now_ms += HOUR_MS
    [request] = in_time.requests(erasure_sensor)
    assert (request.job_name, asked_for(request)) == (VERIFY_ERASURES_JOB_NAME, ["users"])
    for _ in range(5):
        in_time.now_ms += LOOK_AGAIN_MS
        assert in_time.requests(erasure_sensor) == []
    assert said(in_time) == f"not looked at: users: {OUTAGE}"

    assert in_time.run_job(VERIFY_ERASURES_JOB_NAME, request).success
    ticks(in_time, 2)

    assert (shown(in_time), said(in_time)) == ("SUCCEEDED", "")


def test_a_run_that_failed_because_the_catalog_was_away_does_not_leave_the_check_failed(
    in_time: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise StorageUnavailable("the catalog does not answer")

    with monkeypatch.context() as outage:
        outage.setattr(erasures, "look_at_erasures", away)
        assert not by_hand(in_time)
    assert shown(in_time) == "EXECUTION_FAILED"

    assert ticks(in_time, 3) == 1

    assert shown(in_time) == "SUCCEEDED"


def test_the_same_holds_where_no_erasure_was_ever_asked_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.topic("users")
    world.instance.report_run_canceled(queued(world))
    assert ticks(world, 3) == 1
    assert shown(world) == "SUCCEEDED"


def test_what_a_run_has_told_is_not_told_again(in_time: World) -> None:
    in_time.now_ms += 91 * DAY_MS
    ticks(in_time, 1)
    in_time.now_ms += HOUR_MS
    assert by_hand(in_time)
    assert ticks(in_time, 3) == 0


def test_every_topic_that_a_run_could_not_look_at_warns_until_a_tick_has_looked_however_many_are_told_with_the_reason(
    many: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasures, "_REASONS", 1)
    with monkeypatch.context() as outage:
        outage.setattr(Eraser, "list", fails_at("abc"))
        assert by_hand(many)
    looked = noted_looks(monkeypatch, fails="bc")

    ticks(many, 1, LOOK_AGAIN_MS)

    assert looked == ["a", "b", "c"]
    assert said(many) == f"not looked at: b: {OUTAGE}; not looked at: c: {OUTAGE}"
    assert names(many) == {"b", "c"}


@pytest.mark.parametrize("other", ["evaluates", "is cancelled", "looks by hand"])
def test_a_topic_that_could_not_be_looked_at_warns_though_another_run_has_not_looked_at_it(
    many: World, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    monkeypatch.setattr(erasures, "TOPICS", 1)
    with monkeypatch.context() as outage:
        outage.setattr(Eraser, "list", fails_at("c"))
        evaluated_after(many, "c")
    assert said(many) == f"not looked at: c: {OUTAGE}"

    if other == "evaluates":
        evaluated_after(many, "a")
    elif other == "looks by hand":
        assert by_hand(many)
    else:
        many.instance.report_run_canceled(queued(many))
    if other != "is cancelled":
        assert said(many) == f"not looked at: c: {OUTAGE}"
    looked = noted_looks(monkeypatch)
    ticks(many, 2, LOOK_AGAIN_MS)
    assert looked == ["c"]
    assert (shown(many), said(many)) == ("SUCCEEDED", "")


def test_a_topic_that_could_not_be_looked_at_is_looked_at_though_it_could_not_be_read_meanwhile_either(
    many: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as outage:
        outage.setattr(Eraser, "list", fails_at("c"))
        evaluated_after(many, "c")
    looked = noted_looks(monkeypatch)
    table = many.store.load_table("c")
    end = table.properties["log.p0.log-end-offset"]
    table.transaction().set_properties({"log.p0.log-end-offset": "many"}).commit_transaction()
    ticks(many, 1)
    assert (said(many).startswith("not looked at: c: property"), looked) == (True, [])

    many.store.load_table("c").transaction().set_properties({"log.p0.log-end-offset": end}).commit_transaction()
    ticks(many, 2, LOOK_AGAIN_MS)

    assert (shown(many), said(many), looked) == ("SUCCEEDED", "", ["c"])


def test_a_run_that_looks_at_a_topic_ends_the_warning_of_it(many: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as outage:
        outage.setattr(Eraser, "list", fails_at("c"))
        evaluated_after(many, "c")

    evaluated_after(many, "c")

    assert (shown(many), said(many)) == ("SUCCEEDED", "")


def test_an_outage_that_has_other_words_at_each_look_is_told_once(many: World, monkeypatch: pytest.MonkeyPatch) -> None:
    told_that_a_clean_is_needed(many)
    clock, requests = itertools.count(0, 2_000), itertools.count()
    monkeypatch.setattr(erasure_looks, "monotonic_ms", lambda: next(clock))  # there is time for two looks a tick
    for look in ("list", "advance"):
        monkeypatch.setattr(Eraser, look, fails_at("abc", requests))
    assert by_hand(many)

    assert ticks(many, 20, LOOK_AGAIN_MS // 2) <= 1

    assert names(many) == {"a", "b", "c"}


def evaluated_after(world: World, topic: str) -> None:
    """What a run tells of the check that has cleaned a topic."""

    @dg.op(required_resource_keys={"log_store"})
    def after(context: dg.OpExecutionContext) -> None:
        run = MountCall(Mount(), context)
        erasures.tell_erasures(run, erasures.look_at_erasures(world.log_store, world.now_ms, [topic]))

    @dg.job(resource_defs={"log_store": dg.ResourceDefinition.hardcoded_resource(world.log_store)})
    def cleaned() -> None:
        after()

    assert cleaned.execute_in_process(instance=world.instance).success


def names(world: World) -> set[str]:
    """The topics that an evaluation says nobody could look at."""
    [newest] = world.instance.event_log_storage.get_asset_check_execution_history(DEADLINE_CHECK, limit=1)
    assert newest.evaluation
    told = newest.evaluation.metadata["topics_not_looked_at"].value
    assert isinstance(told, dict)
    return set(told)


def fails_at(failing: str, numbers: Iterable[int] | None = None) -> Callable[..., ErasureList]:
    """Looks of an eraser that fail at some topics, with a number in their text if there are any."""
    really = Eraser.list

    def look(eraser: Eraser, topics: Iterable[str] = (), **more: Any) -> ErasureList:
        asked = list(topics)
        failed = {topic: StorageUnavailable(text()) for topic in asked if topic in failing}
        rest = [topic for topic in asked if topic not in failed]
        found = really(eraser, rest, **more) if rest else ErasureList((), {})
        return ErasureList(found.rows, {**found.failed, **failed})

    upcoming = iter(numbers or ())

    def text() -> str:
        return OUTAGE if numbers is None else f"{OUTAGE} (request {next(upcoming)})"

    return look


def noted_looks(monkeypatch: pytest.MonkeyPatch, fails: str = "") -> list[str]:
    """The topics at which ticks look from now on."""
    looked: list[str] = []
    really = Eraser.advance

    def advance(eraser: Eraser, topics: Iterable[str], **more: Any) -> ErasureList:
        looked.extend(topics)
        failed = {topic: StorageUnavailable(OUTAGE) for topic in topics if topic in fails}
        return ErasureList((), failed) if failed else really(eraser, topics, **more)

    monkeypatch.setattr(Eraser, "advance", advance)
    return looked


def _does_not_answer(*_: object, **__: object) -> ErasureList:
    return ErasureList((), {"users": StorageUnavailable(OUTAGE)})
