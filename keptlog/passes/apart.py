"""Rewrites many logs together and, where that fails, apart; and finds out who is at fault: a log, or nobody.

Together is cheap, because Spark gets one job. What it stages counts at once, whatever other logs end with. A log's own
error is one of three:

    it names the log (``OF_A_LOG``)     the log has failed
    any other                           all such logs are tried once more together, for an outage may just have ended,
                                        or the disk have been full of what others had under way
    again, and others did well then     it is at fault, unless Spark has lost what did the work (``SparkUnavailable``);
                                        where none of several did well, something is wrong that nobody sees

If the job itself dies, or several logs of a task end with one error, nobody knows of which log. Then the work is
halved, and halved again, until the log that fails stands alone. That may come of the log, whose worker runs out of
memory at each try, or of an outage of Spark, catalog or storage, which is no log's fault. A setting of Spark that is
wrong, or a module that its workers lack, is wrong for every log (``InvalidConfig``); one of a topic is wrong for its
own logs (``asking_a_topic``).

Where no log does well it is asked: does an empty task run, can the topic be loaded, or at least another one?

    no                       an outage: nothing more is tried, and whoever is left has failed without a fault of its own
    yes, several logs        they are tried apart, or once more
    yes, one log, once       it is tried once more
    yes, one log, again      it is at fault, as above; and unless all logs of several fail like that
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from keptlog.errors import (
    OF_A_LOG,
    InvalidConfig,
    KeptlogError,
    NoRightToWrite,
    NoStoreClient,
    SparkUnavailable,
    StalePlan,
    UnknownTopic,
    first_line,
)
from keptlog.log.result import RewriteResult
from keptlog.log.steps import CleanStep
from keptlog.log.words.counted import counted

_logger = logging.getLogger(__name__)


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
    """One rewrite of many logs on its way."""

    rewrite: Callable[[Sequence[CleanStep]], Sequence[RewriteResult | KeptlogError]]
    """Gives an outcome for each step, in their order; what it raises may be of any of them, or of none."""
    look: Callable[[Sequence[CleanStep]], None]
    """Raises a KeptlogError if what the first of these steps needs is out of reach, and not for it alone."""
    run_id: str
    outcomes: list[RewriteResult] = field(default_factory=list)
    failed: dict[str, KeptlogError] = field(default_factory=dict)
    """Topic-partition to the error."""
    blameless: set[str] = field(default_factory=set)
    """Those of ``failed`` that an outage has stopped."""
    outage: KeptlogError | None = None
    """What is down for all; null if nothing was seen to be. One log that nobody can do is no outage."""
    _all: Sequence[CleanStep] = ()

    def rewrite_all(self, steps: Sequence[CleanStep]) -> None:
        """Rewrite these logs; whatever a Spark task dies of, the other logs go on."""
        self._all = steps
        self._rewrite(steps, is_again=False)
        # A folder that is shut is the fault of its log, and says nothing of what the others end with.
        others = [step for step in steps if not isinstance(self._error(step), NoRightToWrite)]
        if len(others) > 1 and not self.outcomes and not self._is_any_at_fault(others):
            self.blameless |= {str(step.topic_partition) for step in others}
            self.outage = self.outage or self._error(others[0])

    def _error(self, step: CleanStep) -> KeptlogError | None:
        return self.failed.get(str(step.topic_partition))

    def _is_any_at_fault(self, steps: Sequence[CleanStep]) -> bool:
        """Whether a log has an error of its own; none has if no client can be made for the stores of several topics.

        That is a topic's own fault. If all of several end so, it is the fault of who makes the clients.
        """
        errors = [self._error(step) for step in steps]
        clientless = [isinstance(error, NoStoreClient) for error in errors]
        is_shared = all(clientless) and len({step.topic_partition.topic for step in steps}) > 1
        return not is_shared and any(isinstance(error, OF_A_LOG) for error in errors)

    def _rewrite(self, steps: Sequence[CleanStep], *, is_again: bool) -> None:
        if self.outage:
            self._stop(steps, self.outage)
            return
        try:
            outcomes = self.rewrite(steps)
        except Exception as error:  # noqa: BLE001  # whatever a job dies of
            self._after_death(steps, error, is_again=is_again)
        else:
            self._take(steps, outcomes, is_again=is_again)

    def _take(
        self, steps: Sequence[CleanStep], outcomes: Sequence[RewriteResult | KeptlogError], *, is_again: bool
    ) -> None:
        """Take what was staged, and what logs have ended with."""
        good = [outcome for outcome in outcomes if isinstance(outcome, RewriteResult)]
        self.outcomes += good
        unexplained: list[tuple[CleanStep, KeptlogError]] = []
        for step, outcome in zip(steps, outcomes, strict=True):
            if isinstance(outcome, OF_A_LOG):
                self._fail(step, outcome)
            elif isinstance(outcome, KeptlogError):
                unexplained.append((step, outcome))
        times = Counter(id(error) for _, error in unexplained)
        own = [(step, error) for step, error in unexplained if times[id(error)] == 1]
        if own:
            self._after_errors(own, is_again=is_again, do_others_well=bool(good))
        for error in {id(error): error for _, error in unexplained if times[id(error)] > 1}.values():
            self._after_death([step for step, theirs in unexplained if theirs is error], error, is_again=is_again)

    def _after_errors(
        self, errors: Sequence[tuple[CleanStep, KeptlogError]], *, is_again: bool, do_others_well: bool
    ) -> None:
        """Go on where some logs have ended with errors that don't name them."""
        steps = [step for step, _ in errors]
        self.outage = None if do_others_well else self._seen_outage(steps)
        if self.outage:
            self._stop(steps, self.outage)
        elif is_again:
            are_blameless = len(steps) > 1 and not do_others_well
            for step, error in errors:
                self._fail(step, error, is_blameless=are_blameless)
        else:
            text = "run %s: rewriting %s failed, tried once more: %s"
            _logger.warning(text, self.run_id, counted(len(steps), "log"), first_line(errors[0][1]))
            self._rewrite(steps, is_again=True)

    def _after_death(self, steps: Sequence[CleanStep], error: Exception, *, is_again: bool) -> None:
        """Go on where nothing was staged of any of these."""
        reason = error if isinstance(error, KeptlogError) else KeptlogError(first_line(error))
        if not isinstance(reason, OF_A_LOG):
            self.outage = reason if isinstance(reason, InvalidConfig) else self._seen_outage(steps)
        if self.outage:
            self._stop(steps, self.outage)
        elif len(steps) > 1:
            text = "run %s: rewriting %s together failed, they are tried apart: %s"
            _logger.warning(text, self.run_id, counted(len(steps), "log"), first_line(reason))
            middle = len(steps) // 2
            self._rewrite(steps[:middle], is_again=True)
            self._rewrite(steps[middle:], is_again=True)
        elif is_again or isinstance(reason, OF_A_LOG):
            self._fail(steps[0], reason)
        else:
            text = "run %s: rewriting %s failed, it is tried once more: %s"
            _logger.warning(text, self.run_id, steps[0].topic_partition, first_line(reason))
            self._rewrite(steps, is_again=True)

    def _fail(self, step: CleanStep, reason: KeptlogError, *, is_blameless: bool = False) -> None:
        name = str(step.topic_partition)
        self.failed[name] = reason
        self.blameless |= {name} if is_blameless or isinstance(reason, SparkUnavailable) else set()

    def _seen_outage(self, steps: Sequence[CleanStep]) -> KeptlogError | None:
        # What did well tells best whether it is the topic alone that is out of reach.
        others = [*(outcome.step for outcome in self.outcomes), *self._all]
        try:
            self.look([*steps[:1], *others])
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
