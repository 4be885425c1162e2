"""Which topics a tick of the sensor of erasures looks at, to see how far their erasures are.

A topic is looked at where a commit may have brought its erasures on, or the clock: some topics a tick, as long as there
is time, and large ones in a run. Where all wait for a purge they are left to the run that purges, because their storage
has to be listed for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial

from keptlog.dagster.orchestration.erasure_needs import by_a_look
from keptlog.dagster.orchestration.erasure_requests import AGAIN_MS, begun_and_first, last_looks
from keptlog.dagster.orchestration.erasure_tick import ErasureTick
from keptlog.dagster.orchestration.in_flight import UNDER_WAY, slow_runs, topics_in_flight
from keptlog.dagster.orchestration.own_runs import VERIFY_ERASURES_JOB_NAME, OwnRuns
from keptlog.errors import KeptlogError
from keptlog.home import monotonic_ms
from keptlog.log.erasures.open_erasures import ErasureNeed, OpenErasures
from keptlog.log.given.past import is_past, was_within
from keptlog.log.segment import total_bytes
from keptlog.table.waiting.reaching import apart

LOOKING_MS = 5_000
"""For looks at single topics, in each tick."""
LOOK_AGAIN_MS = 600_000
"""A topic that is appended to all the time is not looked at each time."""
LARGE_BYTES = 2**28
"""A topic from this size on is looked at in a run: a tick that takes a minute is ended by Dagster."""
_LOST_MS = AGAIN_MS[VERIFY_ERASURES_JOB_NAME]
"""After this time it is asked what has become of the run that was to look at a large topic."""


@dataclass
class Looks:
    """What came of a tick's looks at single topics."""

    is_any: bool = False
    too_large: list[str] = field(default_factory=list)
    """Topics that are too large for it: a run is to look at them."""
    are_all: bool = True
    """Whether there was time for all that may be further."""
    slow: Sequence[str] = ()
    """The runs at it for hours, where a topic waits for one that looks through it."""


def looked(tick: ErasureTick) -> Looks:
    """Look at topics whose erasures may be further than is known, those first that were not looked at for longest.

    A large topic that a run is looking at waits for it: looks pile up that take longer than the pause between two.
    """
    candidates = [topic for topic, each in tick.workable.items() if _may_be_further(topic, each, tick)]
    looks = Looks()
    if not candidates:
        return looks
    too_large = _large_among(candidates, tick)
    busy, looks.slow = _looked_through_now(too_large, tick)
    until_ms = monotonic_ms() + LOOKING_MS
    for topic in sorted(candidates, key=tick.memory.looked_ms):
        if monotonic_ms() >= until_ms:
            looks.are_all = False
            break
        if topic in busy or (topic in too_large and _is_looked_at_later(topic, tick)):
            continue
        tick.memory.looks_at(topic, tick.seen)
        if topic in too_large:
            looks.too_large.append(topic)
            tick.memory.in_runs.add(topic)
            tick.memory.failed.pop(topic, None)
            continue
        looks.is_any = True
        tick.memory.in_runs.discard(topic)
        tick.looked.add(topic)
        tick.memory.failed.pop(topic, None)
        tick.memory.failed |= _advanced(tick, topic)
    return looks


def _is_looked_at_later(topic: str, tick: ErasureTick) -> bool:
    """Whether a run could not look at a topic, and another is not to try again yet: each reads all of it."""
    return tick.has_failed(topic) and was_within(_LOST_MS, tick.memory.looked_ms(topic), tick.seen.now_ms)


def _large_among(topics: Sequence[str], tick: ErasureTick) -> AbstractSet[str]:
    sizes: Counter[str] = Counter()
    for log in tick.seen.logs:
        sizes[log.topic_partition.topic] += total_bytes(log.segments)
    return {topic for topic in topics if sizes[topic] >= LARGE_BYTES}


def _looked_through_now(topics: AbstractSet[str], tick: ErasureTick) -> tuple[AbstractSet[str], Sequence[str]]:
    """Those of these topics that a run is looking through, or is to next; then the runs at it for hours."""
    if not topics:
        return topics, ()
    own = OwnRuns.of_tick(tick.mounted)
    records = own.records(*UNDER_WAY)
    begun, queued = begun_and_first(records)
    looking = topics_in_flight(own, VERIFY_ERASURES_JOB_NAME, [*begun, *queued])
    busy = set(filter(looking.includes_topic, topics))
    return busy, slow_runs(own, records, VERIFY_ERASURES_JOB_NAME) if busy else ()


def forget_lost_looks(tick: ErasureTick) -> Sequence[str]:
    """Let a large topic be looked at again if its run did not look at it, or never was; the runs at it for hours."""
    memory, now_ms = tick.memory, tick.seen.now_ms
    asked = [topic for topic in memory.in_runs if not was_within(_LOST_MS, memory.looked[topic][1], now_ms)]
    if not asked:
        return ()
    own = OwnRuns.of_tick(tick.mounted)
    looks = last_looks(own)
    for topic in asked:
        look = looks.get(topic)
        if look and look.asked_ms < memory.looked[topic][1]:
            look = None  # it is an earlier one
        if look and look.has_looked is None:
            continue
        memory.in_runs.discard(topic)
        if not (look and look.has_looked):
            del memory.looked[topic], memory.looked_logs[topic]
    is_any_waiting = not memory.in_runs.isdisjoint(asked)
    return slow_runs(own, own.records(*UNDER_WAY), VERIFY_ERASURES_JOB_NAME) if is_any_waiting else ()


def _advanced(tick: ErasureTick, topic: str) -> Mapping[str, KeptlogError]:
    """See how far the erasures of a topic are; why that can't be known, if it can't."""
    look = partial(tick.mounted.log_store.eraser().advance, [topic], now_ms=tick.seen.now_ms)
    found = apart(topic, look)
    return {topic: found} if isinstance(found, KeptlogError) else found.failed


def _may_be_further(topic: str, each: OpenErasures, tick: ErasureTick) -> bool:
    seen, memory = tick.seen, tick.memory
    if is_left_alone(topic, each, tick):
        return False
    if topic not in memory.looked:
        return True
    location, at_ms = memory.looked[topic]
    is_new = location != seen.locations[topic] or tick.has_failed(topic)
    return is_new and not at_ms <= seen.now_ms < at_ms + LOOK_AGAIN_MS


def is_left_alone(topic: str, each: OpenErasures, tick: ErasureTick) -> bool:
    """Whether no look brings its erasures on, until the clock or a commit does."""
    now_ms, memory = tick.seen.now_ms, tick.memory
    # What a clock that was ahead has dated is dated anew by a look, and by nothing else.
    if tick.has_failed(topic) or not all(is_past(needy.since_ms, now_ms) for needy in each.needs):
        return False
    if not by_a_look(each):
        return True
    # Once at their time those are looked at, too, that a commit alone brings on: their register may be damaged.
    is_looked_at = topic in memory.looked and (each.next_ms or 0) <= memory.looked_ms(topic) <= now_ms
    is_early = each.ahead_ms(now_ms) is not None
    return (is_early or is_looked_at) and topic in tick.kept and not each.has(ErasureNeed.SOURCE)
