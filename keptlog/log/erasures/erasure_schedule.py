"""When a pass has to be asked for, so that an erasure's deadline holds: counted back from the deadline.

    clean ... delete.retention.ms ... clean ... file.delete.delay.ms ... purge ... verification | deadline
      ^ asked for, at the latest

Whoever cleans by ratio and lag is mostly earlier, and nothing is asked for. So there is no cost but where a deadline
would be missed. A pass is counted with twice the time that it took last, and with an allowance besides. Where no
deadline was given, and none is promised, nothing is asked for but the verification, which has a time of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from keptlog.log.config import TopicConfig
from keptlog.log.erasures.open_erasures import ErasureNeed, NeedyErasures
from keptlog.log.erasures.remembered import swept_ms, watermarks_ms

ALLOWANCE_MS = 15 * 60_000
"""For each pass: until a sensor ticks, a queue lets it go and Spark has started; and all that again, if it fails."""
VERIFIED_WITHIN_MS = 24 * 3_600_000
"""So long what is deleted may wait for its verification, whatever its deadline, so that one serves many requests."""


@dataclass(frozen=True, slots=True)
class PassTimes:
    """How long passes over a topic took last; 0 where there was none."""

    clean_ms: int = 0
    purge_ms: int = 0
    verification_ms: int = 0


def ask_ms(needy: NeedyErasures, config: TopicConfig, times: PassTimes) -> int | None:
    """From when on the pass that these erasures need is asked for, due or not; null if none is."""
    verify_ms = _lasts_ms(times.verification_ms)
    purge_ms = _lasts_ms(times.purge_ms) + verify_ms
    expire_ms = _lasts_ms(times.clean_ms) + watermarks_ms(config) + swept_ms(config)
    expire_ms += config.file_delete_delay_ms + purge_ms
    deadline_ms = needy.earliest_deadline_ms
    match needy.need:
        case ErasureNeed.CLEAN:
            takes_ms = _lasts_ms(times.clean_ms) + config.delete_retention_ms + expire_ms
        case ErasureNeed.EXPIRY:
            takes_ms = expire_ms
        case ErasureNeed.PURGE:
            takes_ms = purge_ms
        case ErasureNeed.VERIFICATION:
            latest_ms = needy.since_ms + VERIFIED_WITHIN_MS
            return latest_ms if deadline_ms is None else min(deadline_ms - verify_ms, latest_ms)
        case _:
            return None
    return None if deadline_ms is None else deadline_ms - takes_ms


def _lasts_ms(last_ms: int) -> int:
    return 2 * last_ms + ALLOWANCE_MS
