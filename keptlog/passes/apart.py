"""Rewrites many logs together and, where that fails, apart; and finds out who is at fault: a log, or nobody.

Together is cheap, because Spark gets one job. If it fails, the work is halved, and halved again, until the log that
fails stands alone. Some errors name their log (``OF_A_LOG``). All others, a job that Spark has lost for example, may
come of the log, whose worker runs out of memory at each try, or of an outage of Spark, catalog or storage, which is no
log's fault. A setting of Spark that is wrong, or a module that its workers lack, is wrong for every log
(``InvalidConfig``); one of a topic is wrong for its own logs (``asking_a_topic``).
Of all else it is asked: does an empty task run, can the topic be loaded?

    no                       an outage: nothing more is tried, and whoever is left has failed without a fault of its own
    yes, several logs        they are tried apart
    yes, one log, once       it is tried once more: an outage may just have ended
    yes, one log, again      it is at fault, unless Spark says that it has lost what did the work
                             (``SparkUnavailable``); and unless all logs of several fail like that: then something is
                             wrong that the question did not show, such as workers that don't reach the storage
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from keptlog.errors import (
    CommitStateUnknown,
    InvalidConfig,
    InvariantViolated,
    KeptlogError,
    LogCorrupt,
    SparkUnavailable,
    StalePlan,
    UnknownTopic,
    UnsupportedFormat,
    first_line,
)
from keptlog.log.result import RewriteResult
from keptlog.log.steps import CleanStep
from keptlog.log.words.counted import counted

_logger = logging.getLogger(__name__)

OF_A_LOG: tuple[type[KeptlogError], ...] = (
    CommitStateUnknown,
    InvariantViolated,
    LogCorrupt,
    StalePlan,
    UnsupportedFormat,
)
"""Errors that say something of one log or topic, whatever else is up or down."""


@contextmanager
def asking_a_topic() -> Iterator[None]:
    """Around what is asked of one topic's table: what it says of itself is said of no other log.

    Raises:
        StalePlan: the topic was deleted, or given a wrong setting, since it was planned. As ``InvalidConfig`` it would
            be taken for a setting of Spark, which is wrong for every log.
    """
    try:
        yield
    except UnknownTopic as error:
        raise StalePlan(f"{error}; it was deleted since it was planned, there is nothing to do") from None
    except InvalidConfig as error:
        raise StalePlan(f"{error}; it was altered since it was planned, nothing is lost") from error


@dataclass
class Apart:
    """One rewrite of many logs on its way. ``look`` raises a KeptlogError if what a step needs is out of reach."""

    rewrite: Callable[[Sequence[CleanStep]], Sequence[RewriteResult]]
    look: Callable[[CleanStep], None]
    run_id: str
    outcomes: list[RewriteResult] = field(default_factory=list)
    failed: dict[str, KeptlogError] = field(default_factory=dict)
    """Topic-partition to the error."""
    blameless: set[str] = field(default_factory=set)
    """Those of ``failed`` that an outage has stopped."""
    outage: KeptlogError | None = None
    """What is down for all; null if nothing was seen to be. One log that nobody can do is no outage."""

    def rewrite_all(self, steps: Sequence[CleanStep]) -> None:
        """Rewrite these logs; whatever a Spark task dies of, the other logs go on."""
        self._rewrite(steps, is_again=False)
        if len(steps) > 1 and not self.outcomes and not any(isinstance(e, OF_A_LOG) for e in self.failed.values()):
            self.blameless |= self.failed.keys()
            self.outage = self.outage or next(iter(self.failed.values()), None)

    def _rewrite(self, steps: Sequence[CleanStep], *, is_again: bool) -> None:
        reason = None if self.outage else self._why_not(steps)
        if reason and not isinstance(reason, OF_A_LOG):
            self.outage = reason if isinstance(reason, InvalidConfig) else self._seen_outage(steps[0])
        if self.outage:
            self._stop(steps, self.outage)
        elif reason:
            self._go_on_apart(steps, reason, is_again=is_again)

    def _why_not(self, steps: Sequence[CleanStep]) -> KeptlogError | None:
        """Rewrite them together; the error if that fails."""
        try:
            self.outcomes += self.rewrite(steps)
        except Exception as error:  # noqa: BLE001  # whatever a task dies of
            return error if isinstance(error, KeptlogError) else KeptlogError(first_line(error))
        return None

    def _go_on_apart(self, steps: Sequence[CleanStep], reason: KeptlogError, *, is_again: bool) -> None:
        if len(steps) > 1:
            text = "run %s: rewriting %s together failed, they are tried apart: %s"
            _logger.warning(text, self.run_id, counted(len(steps), "log"), first_line(reason))
            middle = len(steps) // 2
            self._rewrite(steps[:middle], is_again=True)
            self._rewrite(steps[middle:], is_again=True)
        elif is_again or isinstance(reason, OF_A_LOG):
            name = str(steps[0].topic_partition)
            self.failed[name] = reason
            self.blameless |= {name} if isinstance(reason, SparkUnavailable) else set()
        else:
            text = "run %s: rewriting %s failed, it is tried once more: %s"
            _logger.warning(text, self.run_id, steps[0].topic_partition, first_line(reason))
            self._rewrite(steps, is_again=True)

    def _seen_outage(self, step: CleanStep) -> KeptlogError | None:
        try:
            self.look(step)
        except OF_A_LOG:
            return None
        except KeptlogError as error:
            return error
        except Exception as error:  # noqa: BLE001  # a Spark that is gone says so in many ways
            return KeptlogError(first_line(error))
        return None

    def _stop(self, steps: Sequence[CleanStep], outage: KeptlogError) -> None:
        names = [str(step.topic_partition) for step in steps]
        text = "run %s: %s left as they are, for nothing can be done now: %s"
        _logger.warning(text, self.run_id, counted(len(names), "log"), first_line(outage))
        self.failed |= dict.fromkeys(names, outage)
        self.blameless |= set(names)
