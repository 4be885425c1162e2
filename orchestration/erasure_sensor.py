"""The sensor of erasures: sees to it that each is done by its deadline, and says aloud when one is not.

It asks for a clean, a purge or a verification as late as the deadline allows (``erasure_needs``), and no sooner than it
helps; who cleans by lag and ratio has mostly been there before. Its runs go before theirs. What a run is working on is
not asked for again, and what was asked for lately is not either; while Spark is down, only a purge is.

A quiet tick reads what all sensors share, and nothing else of the home; it says what the one before has found out,
until the clock or a commit may change that. Some topics it looks at more closely (``erasure_looks``).

Each tick asks Dagster what it shows of the check of deadlines. Where that is not what is to be shown, the check is told
anew: a run may have been ended that was to evaluate it, or somebody has wiped it. At what the last evaluation could not
look, a tick looks itself; until then it counts as not looked at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import dagster as dg

from keptlog.dagster.assets.checks import as_evaluation
from keptlog.dagster.assets.erasures import (
    ErasureNews,
    deadline_result,
    erasures_observation,
    overdue_lines,
)
from keptlog.dagster.assets.mount import MountCall, Tick
from keptlog.dagster.assets.names import CLEAN_JOB
from keptlog.dagster.assets.shown_deadline import Teller, ToldDeadline, shown_deadline
from keptlog.dagster.orchestration.asset_sensors import SensorOfAssets
from keptlog.dagster.orchestration.automation import Automation
from keptlog.dagster.orchestration.erasure_looks import LOOK_AGAIN_MS, forget_lost_looks, is_left_alone, looked
from keptlog.dagster.orchestration.erasure_memory import ErasureMemory, QuietTick, erasure_memory_of
from keptlog.dagster.orchestration.erasure_needs import NeedsNow, PassLengths, TopicNeed
from keptlog.dagster.orchestration.erasure_requests import (
    ErasureRuns,
    ask_for_look,
    requests_for,
)
from keptlog.dagster.orchestration.erasure_tick import ErasureTick
from keptlog.dagster.orchestration.own_runs import PURGE_JOB_NAME, VERIFY_ERASURES_JOB_NAME, OwnRuns
from keptlog.dagster.orchestration.requests import set_pool_size
from keptlog.errors import first_line
from keptlog.log.broker import CLEANER_DISABLED
from keptlog.log.erasures.open_erasures import BY_A_CLEAN, ErasureNeed
from keptlog.log.words.counted import counted, first_lines
from keptlog.passes.observer import Overview

ERASURE_SENSOR = "erasure_sensor"
_LENGTHS_MS = 600_000
"""So long it is remembered how long runs took."""
_QUIET_MS = 600_000
"""So long a tick that had nothing to do is believed, if no topic changes."""
_TOLD = 3
"""Of what a tick tells about single topics: there may be thousands."""


@dataclass(frozen=True)
class _Telling:
    """What a tick tells Dagster."""

    cursor: str
    events: list[dg.AssetObservation | dg.AssetMaterialization | dg.AssetCheckEvaluation] = field(default_factory=list)
    deadline: ToldDeadline | None = None
    """What is shown of the check of deadlines then; null if nothing has to be."""


def erasure_sensor(automation: Automation) -> dg.SensorDefinition:
    """The sensor of a home."""
    mount, jobs = automation.mount, automation.jobs

    def evaluate(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        return _evaluated(MountCall(mount, context))

    return SensorOfAssets(
        [mount.keys.erasures] if automation.topics else [],
        name=mount.name(ERASURE_SENSOR),
        evaluation_fn=evaluate,
        jobs=[jobs.clean_logs, jobs.purge, jobs.verify_erasures],
        description="Asks for cleans, purges and verifications in time for every erasure to be done by its deadline.",
        minimum_interval_seconds=automation.seconds(ERASURE_SENSOR),
        default_status=automation.sensor_status(ERASURE_SENSOR),
        required_resource_keys=mount.needs("log_store", "clock", "spark"),
    )


def _evaluated(mounted: Tick) -> dg.SensorResult:
    context, log_store = mounted.context, mounted.log_store
    now_ms, memory = mounted.now_ms(), erasure_memory_of(log_store)
    tick = ErasureTick(mounted, memory, log_store.observer.look(now_ms), Teller.of(mounted))
    if context.cursor and not tick.seen.locations:
        # Erasures were told of: of a home that is away it would be told that none is open, and none late.
        log_store.require_begun()
    quiet = memory.quiet
    if quiet and quiet.still_holds(tick.seen, context.cursor) and _is_shown(quiet.told, tick):
        return dg.SensorResult(skip_reason=quiet.reason, cursor=quiet.cursor)
    tick = replace(tick, shown=shown_deadline(mounted, tick.teller))
    slow = forget_lost_looks(tick)
    looks = looked(tick)
    if looks.is_any:
        tick = replace(tick, seen=log_store.observer.look(now_ms))
    needs = memory.needs.of(tick.seen, tick.workable, _lengths(tick)) if tick.workable else NeedsNow()
    tick = replace(tick, seen=tick.seen.but_for(needs.unjudged))
    seen, news = tick.seen, ErasureNews(tick.seen, failed=tick.failed)
    for line in first_lines([*overdue_lines(news), *_failure_lines(news)], _TOLD):
        context.log.error("%s", line)
    asked = _asked(tick, needs)
    asked.reasons.extend(line for line in dict.fromkeys([*slow, *looks.slow]) if line not in asked.reasons)
    ask_for_look(mounted.mount, looks.too_large, asked, seen)
    for line in asked.left:
        context.log.info("for erasures: %s", line)
    telling = _telling(tick, news)
    reason = None if asked.requests else _why_nothing(news, needs.all, asked.reasons)
    until_ms = _quiet_until_ms(tick, needs.all) if looks.are_all else None
    memory.quiet = None
    if reason and until_ms:
        memory.quiet = QuietTick(seen.locations, now_ms, until_ms, telling.cursor, telling.deadline, reason)
    return dg.SensorResult(
        run_requests=asked.requests, skip_reason=reason, asset_events=telling.events, cursor=telling.cursor
    )


def _is_shown(told: ToldDeadline | None, tick: ErasureTick) -> bool:
    """Whether Dagster shows what was told, or what another home has told since on the same page."""
    return told is None or told.need_not_be_told(shown_deadline(tick.mounted, tick.teller))


def _quiet_until_ms(tick: ErasureTick, needs: Sequence[TopicNeed]) -> int | None:
    """Until when there is nothing to do if no topic changes; null if there is something to do, or to be said, now."""
    seen, memory = tick.seen, tick.memory
    moments = [seen.now_ms + _QUIET_MS]
    if seen.unreadable or seen.behind or tick.failed:
        return None
    moments += [max(need.ask_ms, need.possible_ms) for need in needs if need.ask_ms is not None]
    for topic, each in tick.workable.items():
        if each.is_overdue(seen.now_ms):
            return None
        moments += [ms for ms in (each.earliest_deadline_ms, each.ahead_ms(seen.now_ms)) if ms is not None]
        is_new = topic in memory.looked and memory.looked[topic][0] != seen.locations[topic]
        # Of a run that is to look it is asked whether it has.
        if is_new and (topic in memory.in_runs or not is_left_alone(topic, each, tick)):
            moments.append(memory.looked[topic][1] + LOOK_AGAIN_MS)
    return min(moments) if min(moments) > seen.now_ms else None


def _asked(tick: ErasureTick, needs: NeedsNow) -> ErasureRuns:
    """The runs to ask for, and why not the others."""
    broker, wanted, reasons = tick.mounted.log_store.broker, list(needs.ripe), []
    if not broker.log_cleaner_enable and any(each.need in BY_A_CLEAN for each in needs.all):
        reasons.append(CLEANER_DISABLED)
        wanted = [each for each in wanted if each.need not in BY_A_CLEAN]
    needs_spark = [each for each in wanted if each.logs or each.need is ErasureNeed.VERIFICATION]
    spark_is_down = tick.mounted.why_spark_is_down() if needs_spark else None
    if spark_is_down:
        reasons.append(f"{spark_is_down}; until then {counted(len(needs_spark), 'topic')} will wait")
        wanted = [each for each in wanted if each not in needs_spark]
    asked = requests_for(OwnRuns.of_tick(tick.mounted), wanted, tick.seen)
    if any(request.job_name == tick.mounted.mount.name(CLEAN_JOB) for request in asked.requests):
        set_pool_size(tick.mounted, broker.log_cleaner_threads)
    return replace(asked, reasons=[*reasons, *asked.reasons])


def _lengths(tick: ErasureTick) -> PassLengths:
    """How long the last purge and the last verification took; asked of Dagster now and then."""
    known, now_ms = tick.memory.lengths, tick.seen.now_ms
    if known is None or not known.asked_ms <= now_ms < known.asked_ms + _LENGTHS_MS:
        own = OwnRuns.of_tick(tick.mounted)
        known = PassLengths(now_ms, _last_ms(own, PURGE_JOB_NAME), _last_ms(own, VERIFY_ERASURES_JOB_NAME))
        tick.memory.lengths = known
    return known


def _last_ms(own: OwnRuns, job_name: str) -> int:
    for record in own.records(dg.DagsterRunStatus.SUCCESS, job_name=job_name, limit=1):
        if record.start_time is not None and record.end_time is not None:
            return round(1000 * (record.end_time - record.start_time))
    return 0


def _why_nothing(news: ErasureNews, needs: Sequence[TopicNeed], reasons: Sequence[str]) -> str:
    """Why a tick asks for no run: what is waited for, and until when."""
    seen, still_open = news.seen, news.seen.open_erasures
    if not still_open:
        unseen = _unseen(seen)
        return "; ".join(["no erasure is known to be open" if unseen else "no erasure is open", *unseen])
    count = sum(each.count for each in still_open.values())
    overdue = sum(each.overdue_count(seen.now_ms) for each in still_open.values())
    parts = [f"{counted(count, 'erasure')} open in {counted(len(still_open), 'topic')}, {overdue or 'none'} overdue"]
    waiting = [each.told(seen.now_ms) for each in needs]
    parts += [*first_lines(reasons, _TOLD), *first_lines(waiting, _TOLD)]
    return "; ".join([*parts, *_unseen(seen)])


def _unseen(seen: Overview) -> list[str]:
    return [*seen.behind_lines(), *seen.unreadable_lines(_TOLD)]


def _failure_lines(news: ErasureNews) -> list[str]:
    failed = {**news.unjudged, **news.failed}
    return [f"{topic}: not known how far its erasures are: {first_line(why)}" for topic, why in failed.items()]


def _telling(tick: ErasureTick, news: ErasureNews) -> _Telling:
    """An observation and a check where something has changed, or where Dagster shows another check than there is.

    The cursor after it is a digest of what was told.
    """
    cursor, keys = tick.mounted.context.cursor or "", tick.mounted.keys
    has_no_news = not news.seen.open_erasures and not cursor
    if news.seen.behind or (has_no_news and tick.shown is None):
        return _Telling(cursor)
    evaluation = as_evaluation(deadline_result(keys, news, tick.teller))
    deadline = ToldDeadline.by(evaluation, tick.teller)
    is_shown = deadline.need_not_be_told(tick.shown)
    if has_no_news and is_shown:
        return _Telling(cursor)
    digest = _digest(news, tick.memory)
    is_told = digest == cursor and is_shown
    return _Telling(digest, [] if is_told else [erasures_observation(keys, news), evaluation], deadline)


def _digest(news: ErasureNews, memory: ErasureMemory) -> str:
    """Of what is stored with the topics, and of what the clock and the logs make of it in what is told."""
    now_ms = news.seen.now_ms
    parts = [f"{memory.digest_of(*each)} {each[1].overdue_count(now_ms)}" for each in news.seen.open_erasures.items()]
    parts += [*sorted(news.unseen), *news.first_needs.values()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
