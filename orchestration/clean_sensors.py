"""Three sensors, one for each reason to clean a log. They run from the start; nobody has to turn them on.

Each tick looks at all logs (``passes.observer``), takes those that are due for the sensor's own reason, and asks for
one run over the most urgent of them; or it says in words why there is nothing to do. A log is due for one reason at a
time, so no two sensors ask for the same one. They live in one process and share one observer: what one has read, the
others need not.

They work on the store, not on the assets: a topic that was created a second ago is cleaned like any other. Only the
asset graph waits for a reload of the code location.

While a Spark server that runs would use does not answer, no run is asked for; the first tick that finds it back asks.

The dirty ratio sensor also reports the dirty sections that have changed, with what the clean section of their topic is
to expect, and the clean ones that Dagster was never told of (``first_looks``, ``untold_cleans``), a few a tick.
"""

import hashlib
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial

import dagster as dg

from keptlog.dagster.assets.mount import MountCall, Tick
from keptlog.dagster.assets.numbers import Metadata, dirty_materialization, held_numbers
from keptlog.dagster.assets.outlook import clean_observation, cleaned_by, log_outlook, of_dirty_section, topic_outlook
from keptlog.dagster.orchestration.asset_sensors import SensorOfAssets
from keptlog.dagster.orchestration.automation import Automation
from keptlog.dagster.orchestration.first_looks import ask_again, first_looks, forget_lost, told_sections
from keptlog.dagster.orchestration.late_first import move_ahead
from keptlog.dagster.orchestration.own_runs import OwnRuns
from keptlog.dagster.orchestration.requests import DueLogs, due_logs, left_over, run_request, set_pool_size, spent
from keptlog.dagster.orchestration.still_told import left_in_turn, stored_keys
from keptlog.dagster.orchestration.stored_ticks import TellingCursor
from keptlog.dagster.orchestration.told_sections import ToldSections
from keptlog.dagster.orchestration.untold_cleans import untold_cleans
from keptlog.errors import KeptlogError, StorageUnavailable, first_line
from keptlog.log.assessment import Assessment, Trigger
from keptlog.log.broker import CLEANER_DISABLED
from keptlog.log.told.health import late_ms
from keptlog.log.told.metrics import metrics_by_log
from keptlog.log.uncleanable import Uncleanable
from keptlog.log.words.advice import CREATE_TOPIC
from keptlog.log.words.counted import counted, first_lines, some_of
from keptlog.log.words.iso_time import iso_time
from keptlog.log.words.named import unnamed
from keptlog.log.words.units import duration
from keptlog.notify.ticks import begin_tick, leave_tick
from keptlog.passes.observer import Overview
from keptlog.table.waiting.reaching import apart

EVENTS_PER_TICK = 20
"""Each is written to Dagster's database in the daemon, at tens of ms apiece; topics of dirty sections come on top."""

_IN_PART = "-"
"""In the cursor, while some changed sections are still to be told, or to be asked about: no digest."""
_DIRTY, _CLEAN = range(2)
"""The turns in the cursor."""
_TOLD = 3
"""Of what a tick tells about single topics and logs: there may be thousands."""

_NONE_IS_DUE = {
    Trigger.MAX_COMPACTION_LAG: "none is due because it is late",
    Trigger.DIRTY_RATIO: "none is due because of its dirty ratio",
    Trigger.TOMBSTONE_EXPIRY: "none is due because of a tombstone past its delete horizon",
}
"""Of one that waits after a failed clean, or is due for a more urgent reason, no more is true."""


_DESCRIPTIONS = {
    Trigger.MAX_COMPACTION_LAG: (
        "Cleans logs with a record that stayed uncompacted for longer than max.compaction.lag.ms, the latest first."
    ),
    Trigger.DIRTY_RATIO: "Cleans logs whose dirty ratio is above min.cleanable.dirty.ratio, the dirtiest first.",
    Trigger.TOMBSTONE_EXPIRY: (
        "Removes tombstones whose delete horizon has passed, also from logs that nobody writes to any more."
    ),
}
CLEAN_SENSORS = tuple(f"{trigger.value}_sensor" for trigger in _DESCRIPTIONS)
"""Their names."""


def clean_sensors(automation: Automation) -> list[dg.SensorDefinition]:
    """The sensors of a home that ask for cleans."""
    return [clean_sensor(automation, trigger) for trigger in _DESCRIPTIONS]


def clean_sensor(automation: Automation, trigger: Trigger) -> dg.SensorDefinition:
    """The sensor of one trigger."""
    mount, name = automation.mount, f"{trigger.value}_sensor"

    def evaluate(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        tick, interval_ms = MountCall(mount, context), 1000 * automation.seconds(name)
        _begin_tick(tick, name, interval_ms)
        try:
            result = _tick(tick, trigger)
        except StorageUnavailable:
            _leave_tick(tick, name, interval_ms)  # it has looked: what is away is told for itself
            raise
        _leave_tick(tick, name, interval_ms)
        return result

    sections = [mount.keys.clean, *([mount.keys.dirty] if trigger is Trigger.DIRTY_RATIO else [])]
    return SensorOfAssets(
        [key_of(topic) for key_of in sections for topic in automation.topics],
        name=mount.name(name),
        evaluation_fn=evaluate,
        job=automation.jobs.clean_logs,
        description=_DESCRIPTIONS[trigger],
        minimum_interval_seconds=automation.seconds(name),
        default_status=automation.sensor_status(name),
        required_resource_keys=mount.needs("log_store", "clock", "spark"),
    )


def _begin_tick(tick: Tick, name: str, interval_ms: int) -> None:
    """Say in the home that a sensor begins a tick: nobody else tells that one fails at each while the others tick."""
    with suppress(KeptlogError):  # which the tick raises itself
        if tick.log_store.why_unbegun() is None:  # in the place of a home that is away nothing is made
            sensor = tick.mount.name(name)
            begin_tick(tick.log_store.path, tick.mount.name_prefix, sensor, tick.now_ms(), interval_ms)


def _leave_tick(tick: Tick, name: str, interval_ms: int) -> None:
    """Say in the home that sensors tick. Of those that fail at each tick nobody else tells that they clean nothing."""
    if tick.log_store.why_unbegun() is None:
        sensor = tick.mount.name(name)
        leave_tick(tick.log_store.path, tick.mount.name_prefix, tick.now_ms(), interval_ms, sensor)


def _tick(tick: Tick, trigger: Trigger) -> dg.SensorResult:
    seen = tick.log_store.observer.look(tick.now_ms())
    context, broker = tick.context, tick.log_store.broker
    for topic, error in seen.unreadable.items():
        context.log.error("%s can't be read: %s", topic, unnamed(topic, error))
    asked = seen.due(trigger) if broker.log_cleaner_enable else []
    own = OwnRuns.of_tick(tick)
    due = due_logs(own, asked, seen.locations, seen.now_ms)
    if trigger is Trigger.MAX_COMPACTION_LAG:
        _move_ahead(tick, own, asked, due)
    spark_is_down = tick.why_spark_is_down() if due.requested else None
    events, cursor = _events(tick, seen) if trigger is Trigger.DIRTY_RATIO else ([], None)
    is_asked_for = due.requested and not spark_is_down
    request = run_request(trigger, due, seen.locations, seen.now_ms) if is_asked_for else None
    ended = spent(own, request, seen.now_ms) if request else None
    requests = [request] if request and not ended else []
    # At each tick: what waits in the queue may be an erasure's clean, or a schedule's, of logs that are not due.
    set_pool_size(tick, broker.log_cleaner_threads)
    if requests and (left := left_over(due)):
        context.log.info(left)
    reason = why_nothing(trigger, seen, due) if broker.log_cleaner_enable else CLEANER_DISABLED
    reason += "" if seen.locations else tick.log_store.perhaps_away()
    if ended:
        reason = ended.told(some_of(ended.names, _TOLD))
    if spark_is_down:
        reason = f"{spark_is_down}; until then {counted(len(due.requested), 'log')} will wait"
    return dg.SensorResult(
        run_requests=requests,
        skip_reason=None if requests else reason,
        asset_events=events,
        cursor=cursor,
    )


def _move_ahead(tick: Tick, own: OwnRuns, late: Sequence[Assessment], due: DueLogs) -> None:
    """Let queued runs of what is late go first."""
    waiting = set(due.queued)
    for run_id in move_ahead(own, [each.log for each in late if str(each.log.topic_partition) in waiting]):
        tick.context.log.info("run %s goes first in Dagster's queue from now on: it is to clean what is late", run_id)


def why_nothing(trigger: Trigger, seen: Overview, due: DueLogs) -> str:
    """Why a tick asks for no run, and when that may change."""
    if not seen.locations and not seen.behind:
        return f"no topics yet: create one with `{CREATE_TOPIC}`"
    parts = [counted(len(seen.assessments), "log") + ", " + _NONE_IS_DUE[trigger]]
    if due.in_flight or due.queued or due.paused:
        parts = first_lines([f"{name} is being cleaned" for name in due.in_flight], _TOLD)
        parts += first_lines([f"{name} waits for its clean, whose run is queued" for name in due.queued], _TOLD)
        parts += due.slow[:_TOLD]
    paused = [
        f"an outage has stopped the clean of {name}, the next is asked for at {iso_time(retry_at_ms)}"
        for name, retry_at_ms in due.paused
    ]
    waiting = [each for each in seen.assessments if not each.trigger]
    marked = [_marked(each, each.log.uncleanable, seen.now_ms) for each in waiting if each.log.uncleanable]
    parts += [*first_lines(paused, _TOLD), *first_lines(marked, _TOLD)]
    upcoming = [(each.due_ms, str(each.log.topic_partition)) for each in waiting if each.due_ms is not None]
    if upcoming:
        due_ms, name = min(upcoming)
        parts.append(f"next to look at: {name} at {iso_time(due_ms)}")
    parts += seen.behind_lines()
    parts += seen.unreadable_lines(_TOLD)
    parts += map(str, seen.late_holders()[:_TOLD])
    return "; ".join(parts)


def _marked(each: Assessment, mark: Uncleanable, now_ms: int) -> str:
    late = late_ms(each, now_ms)
    return f"{each.log.topic_partition} is {f'{duration(late)} late, and ' if late else ''}{mark.told(now_ms)}"


def _events(tick: Tick, seen: Overview) -> tuple[Sequence[dg.AssetMaterialization | dg.AssetObservation], str]:
    """What a tick tells of assets, and the cursor after it."""
    sections = ToldSections.of(tick)
    untold = sections.untold(tick.context.cursor)
    sections.forget(untold)
    # Of a topic that is gone nothing was told if its name comes back; what somebody has wiped was told to nobody.
    stored = stored_keys(tick)
    shown = {topic for topic in seen.locations if tick.keys.dirty(topic) in stored}
    sections.forget_all_but(shown)
    ask_again(tick, set() if untold is None else stored)
    before = TellingCursor.of(tick.context.cursor)
    _take_for_told(sections, seen, shown, before)
    _forget_lost(tick, sections, shown, seen.now_ms)
    dirty_turn = sections.ask(tick, seen, shown, before.turn(_DIRTY))
    changed = sections.changed_in(seen)
    # A large topic that is new has as many clean sections to be told, and a mark that has come or gone does not wait.
    clean_most = max(EVENTS_PER_TICK // 2, EVENTS_PER_TICK - len(changed))
    clean, clean_turn = first_looks(tick, seen, clean_most, before.turn(_CLEAN))
    told = changed[: EVENTS_PER_TICK - len(clean)]
    state = _digest(seen) if told == changed and sections.knows_all(seen) else _IN_PART
    cursor = before.after(state, len(told), dirty_turn, clean_turn)
    dirty = _events_of(tick, seen, told, EVENTS_PER_TICK - len(clean))
    # Not before: making events asks Dagster's database, which may not answer.
    sections.remember(told)
    sections.ends(tick.context.cursor, cursor, (each.log.topic_partition for each in told))
    return [*clean, *dirty], cursor


def _forget_lost(tick: Tick, sections: ToldSections, shown: Collection[str], now_ms: int) -> None:
    """Take for told to nobody what Dagster has lost, of a few sections."""
    dirty = {tick.keys.dirty(topic): topic for topic in (() if sections.is_none else shown)}
    unasked = {key for key, topic in dirty.items() if sections.is_unasked(topic)}
    left = left_in_turn(tick, told_sections(tick) | dirty.keys(), unasked, now_ms)
    forget_lost(tick, left)
    for key in left.keys() & dirty.keys():
        sections.forget_lost(dirty[key], left[key])


def _take_for_told(sections: ToldSections, seen: Overview, shown: Collection[str], cursor: TellingCursor) -> None:
    """Spare Dagster the questions of a new process that finds the digest unchanged: it has nothing new to tell.

    That is so of the topics that are shown, and it can't know before it has read all topics.
    """
    if sections.is_none and not seen.behind and cursor.state == _digest(seen):
        sections.take_for_told([each for each in seen.assessments if each.log.topic_partition.topic in shown])


def _events_of(
    tick: Tick, seen: Overview, told: Sequence[Assessment], most: int
) -> list[dg.AssetObservation | dg.AssetMaterialization]:
    """Of dirty sections, and of the clean ones beside them."""
    of_topics: dict[str, list[Assessment]] = {each.log.topic_partition.topic: [] for each in told}
    for each in seen.assessments:
        if each.log.topic_partition.topic in of_topics:
            of_topics[each.log.topic_partition.topic].append(each)
    outlooks = {topic: topic_outlook(tick, each, seen.now_ms) for topic, each in of_topics.items()}
    dirty = []
    for each in told:
        name = each.log.topic_partition
        event = apart(name.topic, partial(_dirty_event, tick, seen, each, outlooks[name.topic]))
        if isinstance(event, KeptlogError):
            tick.context.log.error("what has changed of %s is not told: %s", name, first_line(event))
        else:
            dirty.append(event)
    clean = [
        clean_observation(tick.keys, topic, {**cleaned_by(tick, of_topics[topic]), **outlook})
        for topic, outlook in outlooks.items()
    ]
    return [*untold_cleans(tick, seen, of_topics, most), *dirty, *clean]


def _dirty_event(tick: Tick, seen: Overview, each: Assessment, outlook: Metadata) -> dg.AssetMaterialization:
    name, broker = each.log.topic_partition, tick.log_store.broker
    metrics = metrics_by_log([each], seen.last_passes, seen.erasures, seen.now_ms)
    holdings = seen.holdings.get(name.topic)
    held = held_numbers(holdings, seen.now_ms) if holdings else {}
    more = {**log_outlook(each, broker), **of_dirty_section(outlook), **held}
    return dirty_materialization(tick.keys, each, metrics[name], more)


def _digest(seen: Overview) -> str:
    """A few characters that change whenever a section does, by time alone too, or when one can be read that could not.

    What is shown of a section is in its version, as in what Dagster is told. A topic's files stay as they are when
    its active segment closes, or when its records are old enough to be cleaned.
    """
    sections = (f"{each.log.topic_partition} {each.log.topic_id} {each.dirty_version}" for each in seen.assessments)
    return hashlib.sha256("\n".join(sorted(sections)).encode()).hexdigest()[:16]
