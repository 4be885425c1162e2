"""Topics as code: brings the topics of a home to what a file declares of them.

    file ──> entries ──┐
                       ├─ plan ──> create, alter, delete; or what can't be accepted ──> carried out, a commit a topic
    home ──> topics  ──┘           data; changes nothing

A plan is refused whole: where one entry can't be accepted, nothing is done for the others. Else each topic stands
alone: one that can't be read, or that fails, stops no other, and applying the file again does what is left, because
what is done is no difference any more. Only when catalog or storage don't answer nothing further is tried. A file of
one topic that a disk does not give is no such outage: then another topic can be read. Nor is one of which the disk
takes no file, unless it is so with the next ones too.

A topic that is in the home and not in the file is left alone. To be deleted it has to be named.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from keptlog.errors import InvalidConfig, KeptlogError, StorageUnavailable, UnknownTopic
from keptlog.log.config import TopicConfig
from keptlog.log.declared import DeclaredTopic, Difference, TopicChange, change_to
from keptlog.log.given.given import texts
from keptlog.log.given.given_time import passed_now_ms
from keptlog.log.told.altered import fallen_back, in_force, what_altering_does
from keptlog.passes.names import require_topics
from keptlog.progress import Progress, silent
from keptlog.table.catalogs.embedded import unfinished_deletion
from keptlog.table.changes.declaration import Declaration, DeclaredCreation, declared_topic
from keptlog.table.commits.loading import id_to_delete
from keptlog.table.metadata.lineage import require_own
from keptlog.table.metadata.logs import config_of
from keptlog.table.metadata.state import read_source
from keptlog.table.waiting.reaching import apart, parted, why_not_landed, why_unseen
from keptlog.table.waiting.side_by_side import each_apart, side_by_side
from keptlog.topics_file.reading import TopicEntry, TopicsFile

if TYPE_CHECKING:
    from keptlog.table.removal.topic_deletion import TopicDeletion
    from keptlog.table.store import LogStore

_OTHERS_ASKED = 2
"""Whether storage is down for all: each may take as long as a storage that does not answer is waited for."""
_IN_A_ROW = 3
"""So many that fail like that one after the other, and what is left would too, though others can be read."""
OTHER_PARTITIONS = "a key may go to another partition from then on; its older records stay where they are"


@dataclass(frozen=True, slots=True)
class Refused:
    """What can't be accepted, and why."""

    line: int
    text: str
    error: InvalidConfig | None = None
    """What the home said; null if the file itself is wrong."""


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """A change of one topic."""

    change: TopicChange
    topic_id: str | None = None
    """Null if it is to be created."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Of the settings that go back to their defaults: what is in force then, and where it comes from."""
    defaults_before: Mapping[str, str] = field(default_factory=dict)
    """Of the settings that it did not set: what was in force, and where it came from."""
    notes: tuple[str, ...] = ()
    """What is easily overlooked, for people."""

    @property
    def differences(self) -> tuple[Difference, ...]:
        return self.change.differences

    @property
    def is_creation(self) -> bool:
        return self.change.before is None


@dataclass(frozen=True, slots=True)
class TopicsPlan:
    """What lies between a file and a home."""

    where: str
    """The file's name."""
    changes: tuple[PlannedChange, ...] = ()
    """In the file's order."""
    deletions: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    undeclared: tuple[str, ...] = ()
    """In the home and not in the file: they are left alone."""
    gone: tuple[str, ...] = ()
    """To be deleted, and not there."""
    refused: tuple[Refused, ...] = ()
    """With one of these, nothing is done."""
    failed: Mapping[str, KeptlogError] = field(default_factory=dict)
    """Topics that can't be compared, or must not be written to; the others are brought there."""
    not_tried: tuple[str, ...] = ()
    """Because catalog or storage did not answer."""
    is_outage: bool = False
    """Whether catalog or storage did not answer; then nothing is done."""
    deleted_ids: Mapping[str, str] = field(default_factory=dict)
    """Of those to be deleted: a later one of the name is not meant. In an outage nobody was asked."""

    @property
    def has_differences(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.changes or self.deletions)

    def refused_lines(self) -> list[str]:
        """What can't be accepted, each with its place."""
        return [f"{self.where}:{each.line}: {each.text}" for each in self.refused]


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a plan."""

    plan: TopicsPlan
    done: tuple[str, ...] = ()
    """Topics that were created or altered."""
    deletions: Mapping[str, TopicDeletion] = field(default_factory=dict)
    """By topic; one that is not over is among the failed too."""
    failed: Mapping[str, KeptlogError] = field(default_factory=dict)
    not_tried: tuple[str, ...] = ()
    """Because catalog or storage did not answer."""


@dataclass(frozen=True)
class Applier:
    """Brings the topics of one store to what is declared of them; ``at_once`` of them side by side."""

    store: LogStore
    new_id: Callable[[], str]
    at_once: int = 1

    def plan(self, file: TopicsFile, delete: Collection[str] = ()) -> TopicsPlan:
        """What is to be done; only the topics that the file names are read. Changes nothing.

        Raises:
            InvalidConfig: ``delete`` is no list of names.
            StorageUnavailable: the catalog can't be reached.
        """
        wanted = tuple(dict.fromkeys(texts(delete, "the topics to delete")))
        topics, going = set(self.store.topics()), set(self.store.being_deleted())
        entries = {entry.topic.name: entry for entry in file.entries}
        outage = threading.Event()

        def planned_of(name: str) -> PlannedChange | Refused | KeptlogError | None:
            if outage.is_set():
                return None
            planned = self._planned(entries[name], topics, going)
            if isinstance(planned, KeptlogError) and _is_outage(planned) and _are_down(self.store, topics - {name}):
                outage.set()
            return planned

        planned = side_by_side(planned_of, entries, self.at_once)
        refused = [Refused(each.line, each.text) for each in file.problems]
        refused += [each for each in planned.values() if isinstance(each, Refused)]
        for name in sorted(file.lines.keys() & set(wanted)):
            text = f"topic {name} is declared here and to be deleted (--delete {name}): choose one"
            refused.append(Refused(file.lines[name], text))
        changes = [each for each in planned.values() if isinstance(each, PlannedChange)]
        there = [name for name in wanted if name in topics | going]
        ids = {} if outage.is_set() else {name: self._id_to_delete(name) for name in there}
        gone = {*wanted} - {*there} | {name for name, each in ids.items() if isinstance(each, UnknownTopic)}
        unreadable = {name: each for name, each in ids.items() if isinstance(each, KeptlogError) and name not in gone}
        return TopicsPlan(
            file.where,
            tuple(each for each in changes if each.differences or each.is_creation),
            tuple(name for name in there if name not in {*gone, *unreadable}),
            tuple(each.change.name for each in changes if not (each.differences or each.is_creation)),
            tuple(sorted(topics - file.lines.keys() - set(wanted))),
            tuple(name for name in wanted if name in gone),
            tuple(sorted({(each.line, each.text): each for each in refused}.values(), key=attrgetter("line", "text"))),
            {name: each for name, each in planned.items() if isinstance(each, KeptlogError)} | unreadable,
            tuple(name for name, each in planned.items() if each is None),
            outage.is_set(),
            {name: each for name, each in ids.items() if isinstance(each, str)},
        )

    def carry_out(self, plan: TopicsPlan, now_ms: int, progress: Progress = silent) -> Applied:
        """Do it, deletions last; a topic that fails stops no other.

        Raises:
            InvalidConfig: something of the plan is refused, or the home is a copy, or was moved; nothing was done.
        """
        now_ms = passed_now_ms(now_ms)
        if plan.refused:
            raise InvalidConfig(f"nothing was changed: {'; '.join(plan.refused_lines())}")
        if not plan.has_differences:
            return Applied(plan, failed=plan.failed, not_tried=plan.not_tried)
        self.store.require_writable()
        run = _Run(self.store, self._broker_settings, self.new_id, now_ms, progress, is_outage=plan.is_outage)
        changes = {each.change.name: each for each in plan.changes}
        side_by_side(lambda name: run.attempt(name, lambda: run.change(changes[name])), changes, self.at_once)
        for name in plan.deletions:
            run.attempt(name, partial(run.delete, name, plan.deleted_ids))
        in_order = [*changes, *plan.deletions]
        return Applied(
            plan,
            tuple(name for name in changes if name in run.done),
            run.deletions,
            {**plan.failed, **{name: run.failed[name] for name in in_order if name in run.failed}},
            (*plan.not_tried, *(name for name in in_order if name in run.not_tried)),
        )

    def export(self, names: Iterable[str] = ()) -> tuple[list[DeclaredTopic], dict[str, KeptlogError]]:
        """The topics as they are, all or some, by name; and those that can't be read, with the reason.

        Raises:
            UnknownTopic: there is no topic of such a name.
        """
        names, topics = texts(names, "the topics to export"), self.store.topics()
        require_topics(names, topics)
        found = each_apart(
            lambda name: declared_topic(self.store.load_table(name)), sorted(set(names)) or topics, self.at_once
        )
        declared, unreadable = parted(found)
        return [*declared.values()], unreadable

    @property
    def _broker_settings(self) -> Mapping[str, str]:
        return self.store.clock_guard.broker_settings

    def _id_to_delete(self, name: str) -> str | KeptlogError:
        return apart(name, lambda: id_to_delete(self.store.committer.catalog, name))

    def _planned(self, entry: TopicEntry, topics: set[str], going: set[str]) -> PlannedChange | Refused | KeptlogError:
        name = entry.topic.name
        try:
            if name in topics:
                return self._altered(entry.topic)
            if name in going:  # the file is right, and what is left of one topic stops no other
                return unfinished_deletion(name)
            self._require_free_name(name, topics, going)
            config = TopicConfig.of(entry.topic.config, self._broker_settings)
            note = f"cleanup.policy is {config.policy_text}: it will not be compacted"
            return PlannedChange(change_to(None, entry.topic, ()), notes=() if config.is_compacted else (note,))
        except InvalidConfig as error:
            text = f"topic {name}: {str(error).removeprefix(f'topic {name}: ')}"
            return Refused(entry.line, text, error)
        except Exception as error:  # noqa: BLE001  # whatever is wrong with a topic, it is nothing to the others
            return why_unseen(name, error)

    def _altered(self, declared: DeclaredTopic) -> PlannedChange:
        """What a topic that is there lacks; all that its commit would refuse is refused here."""
        from keptlog.table.purging.quiet import has_open_erasures  # noqa: PLC0415  # only for a topic that is there

        table = self.store.load_table(declared.name)
        before = declared_topic(table)
        change = change_to(before, declared, read_source(declared.name, table.properties).positions)
        planned = PlannedChange(change, str(table.metadata.table_uuid))
        if not planned.differences:
            return planned
        require_own(table)
        declaration = Declaration(change, planned.topic_id or "", "")
        after = declaration.config_after(table.properties, self._broker_settings)
        there = self._config_there(declared.name, table.properties)
        notes = () if before.partitions == change.after.partitions else (OTHER_PARTITIONS,)
        were = in_force(there, change.to_set.keys() - before.config.keys()) if there else {}
        return replace(
            planned,
            defaults=_values(fallen_back(change.unset, self._broker_settings)),
            defaults_before=_values(were),
            notes=(*notes, *what_altering_does(there, after, are_erasures_open=has_open_erasures(table))),
        )

    def _config_there(self, name: str, properties: Mapping[str, str]) -> TopicConfig | None:
        """Null if it can't be resolved; then the change may be what mends it."""
        try:
            return config_of(name, properties, self._broker_settings)
        except InvalidConfig:
            return None

    def _require_free_name(self, name: str, topics: set[str], going: set[str]) -> None:
        for other in topics | going:
            if other.lower() == name.lower():
                raise InvalidConfig(f"it differs from topic {other} only in capitals: choose another name")


@dataclass
class _Run:
    """A plan on its way, and what became of each topic."""

    store: LogStore
    broker_settings: Mapping[str, str]
    new_id: Callable[[], str]
    now_ms: int
    progress: Progress
    done: set[str] = field(default_factory=set)
    deletions: dict[str, TopicDeletion] = field(default_factory=dict)
    failed: dict[str, KeptlogError] = field(default_factory=dict)
    not_tried: set[str] = field(default_factory=set)
    is_outage: bool = False
    """Whether catalog or storage did not answer; what is left of one topic stops no other."""
    in_a_row: int = 0
    """So many did not get theirs because of that, since one did."""
    _counting: threading.Lock = field(default_factory=threading.Lock)

    def attempt(self, name: str, do: Callable[[], None]) -> None:
        """Do it for a topic, unless it would fail as the one before did."""
        if self.is_outage:
            self.not_tried.add(name)
            return
        try:
            do()
        except Exception as raised:  # noqa: BLE001  # as above
            error = self.failed[name] = why_not_landed(name, raised)
            # Others fail meanwhile: what one of them has found out stays.
            if _is_outage(error) and (self._counts() >= _IN_A_ROW or self._are_others_down(name)):
                self.is_outage = True
        else:
            self.in_a_row = 0

    def _counts(self) -> int:
        with self._counting:
            self.in_a_row += 1
            return self.in_a_row

    def _are_others_down(self, name: str) -> bool:
        try:
            others = {*self.store.topics()} - {name}
        except KeptlogError:
            return True
        return bool(others) and _are_down(self.store, others)

    def change(self, planned: PlannedChange) -> None:
        committer, change = self.store.committer, planned.change
        if planned.topic_id is None:
            DeclaredCreation(change.after).commit(committer, self.broker_settings, self.new_id)
        else:
            Declaration(change, planned.topic_id, self.new_id()).commit(committer, self.broker_settings)
        self.done.add(change.name)
        self.progress(f"{'altered' if planned.topic_id else 'created'} {change.name}")

    def delete(self, name: str, topic_ids: Mapping[str, str]) -> None:
        deletion = self.deletions[name] = self.store.delete_topic(name, self.now_ms, topic_ids[name])
        if deletion.unfinished:
            self.failed[name] = deletion.unfinished


def _values(in_force: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    return {name: f"{value}, {whence}" for name, (value, whence) in in_force.items()}


def _are_down(store: LogStore, others: Collection[str]) -> bool:
    """Whether the first of some other topics can be read no more than one that failed."""
    for name in sorted(others)[:_OTHERS_ASKED]:
        try:
            store.load_table(name)
        except KeptlogError as error:
            if _is_outage(error):
                continue
        return False
    return True


def _is_outage(error: KeptlogError) -> bool:
    """Whether what it says is to be expected of every other topic too; a right may be missing for one."""
    return isinstance(error, StorageUnavailable) and not error.is_refused
