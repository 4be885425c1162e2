"""What an ingest would do: a plan for each topic of one source, made from its survey and the positions here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from keptlog.errors import InvariantViolated, KeptlogError, StorageUnavailable, UnknownTopic
from keptlog.log.refilled import without_cut_off
from keptlog.log.source import IngestPlan, StoredSource, with_later_ends, with_leader_epochs
from keptlog.log.topic_partition import TopicPartition
from keptlog.log.words.counted import counted, some_of

if TYPE_CHECKING:
    from keptlog.engine.ingest_tasks import Part
    from keptlog.ingest.source import Source, Survey


_NAMES_IN_LINE = 3


@dataclass(frozen=True, slots=True)
class PlannedTopic:
    """What is to be read of one topic, and how it is created if it does not exist yet."""

    plan: IngestPlan
    config: Mapping[str, str]
    left_out: Mapping[str, str]
    """Settings that it has at its source and that mean nothing here, with the reason."""
    log_starts: Mapping[int, int] = field(default_factory=dict)
    """By partition, where its log begins there."""
    positions: tuple[int | None, ...] = ()
    """Of its partitions here, those of which nothing was read among them; none if it does not exist yet."""
    lacking: Mapping[int, str] = field(default_factory=dict)
    """By partition, what shows that records are missing at its source which nobody has deleted."""
    waiting: Mapping[int, int] = field(default_factory=dict)
    """By partition, how many offsets there can't be read before an open transaction ends, if any."""

    @property
    def is_new(self) -> bool:
        """Whether it is to be created."""
        return not self.positions

    def position(self, partition: int) -> int | None:
        """The position that was planned from; null if nothing was ever read there."""
        return self.positions[partition] if partition < len(self.positions) else None


@dataclass(frozen=True, slots=True)
class IngestPlans:
    """What there is to do for one source."""

    source: Source
    topics: tuple[PlannedTopic, ...]
    failed: dict[str, KeptlogError]
    """Topics and topic-partitions that can't be had from there, or that can't take records from there."""
    warnings: tuple[str, ...] = ()
    skip_lost: bool = False
    """Whether to go on although records or deletions may have been missed."""
    reconcile: bool = False
    """Whether to compare with all that is there, and delete here what is gone."""

    @property
    def lag(self) -> dict[TopicPartition, int]:
        """How many offsets of each topic-partition are yet to be read, of those that can be.

        Some of them may hold no record.
        """
        lag: dict[TopicPartition, int] = {}
        for topic in self.topics:
            lags = topic.plan.lags
            for partition in set(range(topic.plan.partitions)) - set(topic.plan.stopped):
                lag[TopicPartition(topic.plan.topic, partition)] = lags.get(partition, 0)
        return {name: offsets for name, offsets in sorted(lag.items()) if str(name) not in self.failed}

    @property
    def notes(self) -> list[str]:
        """What is to be told, and is no warning, a line each."""
        return [*self.left_out_lines, *self._waiting_lines]

    @property
    def _waiting_lines(self) -> list[str]:
        """What can't be read yet, which is in no lag: one line, for where transactions are used one is mostly open.

        Nobody can tell by one look that one hangs.
        """
        waiting = {
            TopicPartition(each.plan.topic, number): offsets
            for each in self.topics
            for number, offsets in each.waiting.items()
        }
        if not waiting:
            return []
        names = some_of([str(name) for name in sorted(waiting)], _NAMES_IN_LINE)
        offsets = counted(sum(waiting.values()), "offset")
        return [f"a transaction is open in {names}: {offsets} there can't be read before it ends"]

    @property
    def left_out_lines(self) -> list[str]:
        """What settings new topics don't get, a line for each: a default of the cluster is one of every topic there."""
        topics: dict[tuple[str, str], list[str]] = {}
        for each in self.topics:
            for setting in each.left_out.items():
                topics.setdefault(setting, []).append(each.plan.topic)
        return [
            f"{some_of(names, _NAMES_IN_LINE)}: {name} is left out: {reason}"
            for (name, reason), names in topics.items()
        ]

    def up_to(
        self,
        survey: Survey,
        stored: Mapping[str, StoredSource | None],
        failed: Mapping[str, KeptlogError],
        looked_ms: int,
    ) -> IngestPlans:
        """What there is to do, in what the source holds by a later survey, which began no earlier than ``looked_ms``.

        A topic here that could not be read then, which ``failed`` says, has nothing to do. One of which that survey
        says nothing has failed: it was there to be read, and nothing else would tell that it was not.
        """
        plans = [each.plan for each in self.topics]
        names = {str(TopicPartition(plan.topic, each.partition)) for plan in plans for each in plan.ranges}
        names |= {plan.topic for plan in plans}
        failed_now = {name: error for name, error in survey.failed.items() if name in names}
        there = {each.topic: each.there for each in survey.topics}
        for plan in plans:
            if plan.topic not in there and (why := survey.why_unseen(plan.topic)):
                failed_now[plan.topic] = why

        def up_to_there(planned: PlannedTopic) -> PlannedTopic | None:
            found = there.get(planned.plan.topic)
            if planned.plan.topic in failed or not found:
                return None
            known = stored.get(planned.plan.topic) or StoredSource(None, ())
            plan = with_leader_epochs(with_later_ends(planned.plan, found, looked_ms), known, found)
            return replace(planned, plan=plan)

        topics = tuple(filter(None, map(up_to_there, self.topics)))
        return replace(self, topics=topics, failed={**self.failed, **failed_now, **failed})

    def asked_for_cuts(self) -> IngestPlans:
        """What there is to do, once the source was asked whether logs were cut off in which nothing is to be read.

        Those that were are stopped. One of which it does not say it now has lost nothing, and is asked for again: that
        is a warning. One of which it never will, as where a permission is missing, fails; and so does one that was to
        be compared with all that is there, as the next ingest does not do that.
        """
        unsure = [each.plan for each in self.topics if each.plan.unsure]
        if not unsure:
            return self
        ends, errors = self.source.ends_of_epochs(unsure)
        topics = tuple(replace(each, plan=without_cut_off(each.plan, ends, errors)) for each in self.topics)
        may_pass = {name: error for name, error in errors.items() if isinstance(error, StorageUnavailable)}
        untold = {} if self.reconcile else may_pass
        failed = {str(name): error for name, error in errors.items() if name not in untold}
        warnings = (*self.warnings, *_lines_of(untold))
        return replace(self, topics=topics, failed={**self.failed, **failed}, warnings=warnings)

    def of_topics_here(self) -> IngestPlans:
        """What there is to do without creating a topic: those that were asked for were here, and may be deleted since.

        All that was deleted with one would come back.
        """
        new = [each.plan.topic for each in self.topics if each.is_new]
        gone = {name: UnknownTopic(f"topic {name} is not here any more: nothing of it was ingested") for name in new}
        topics = tuple(each for each in self.topics if not each.is_new)
        return replace(self, topics=topics, failed={**self.failed, **gone})

    def only(self, names: Collection[TopicPartition]) -> IngestPlans:
        """What there is to do for some topic-partitions alone; the others keep their positions, and fail nothing."""
        wanted = {*(name.topic for name in names), *(str(name) for name in names)}
        failed = {name: error for name, error in self.failed.items() if name in wanted}
        topics = tuple(_only_of(each, names) for each in self.topics)
        return replace(self, topics=topics, failed=failed)


def _lines_of(errors: Mapping[TopicPartition, KeptlogError]) -> list[str]:
    """A line for each cause."""
    names: dict[str, list[str]] = {}
    for name in sorted(errors):
        names.setdefault(str(errors[name]), []).append(str(name))
    return [f"{some_of(each, _NAMES_IN_LINE)}: {why}" for why, each in names.items()]


def _only_of(planned: PlannedTopic, names: Collection[TopicPartition]) -> PlannedTopic:
    plan = planned.plan
    wanted = {name.partition for name in names if name.topic == plan.topic}
    ranges = tuple(each for each in plan.ranges if each.partition in wanted)
    stopped = {partition: reason for partition, reason in plan.stopped.items() if partition in wanted}
    unsure = tuple(each for each in plan.unsure if each.partition in wanted)
    waiting = {partition: offsets for partition, offsets in planned.waiting.items() if partition in wanted}
    return replace(planned, plan=replace(plan, ranges=ranges, stopped=stopped, unsure=unsure), waiting=waiting)


def require_covered(plan: IngestPlan, parts: Sequence[Part]) -> None:
    """Whether the parts, in their order, are the ranges of the plan; a gap would be records that nobody reads.

    Raises:
        InvariantViolated: they are not.
    """
    ends = {TopicPartition(plan.topic, each.partition): each.from_offset for each in plan.ranges}
    for part in parts:
        if ends.get(part.topic_partition) != part.from_offset:
            raise _uncovered(part.topic_partition, part.from_offset)
        ends[part.topic_partition] = part.end_offset
    for each in plan.ranges:
        name = TopicPartition(plan.topic, each.partition)
        if ends[name] != each.end_offset:
            raise _uncovered(name, ends[name])


def _uncovered(name: TopicPartition, offset: int) -> InvariantViolated:
    return InvariantViolated(f"{name}: the parts to read don't cover what is planned around {offset}; report this")
