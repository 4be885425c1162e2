"""What Dagster shows of the check of erasures' deadlines, and whose word that is.

Dagster shows the newest row of the check, whoever made it: a run that was ended in the queue, or failed, or could not
look for a moment. So an evaluation names all topics at which nobody could look, also those of the evaluation before it
at which its run has not looked. The sensor goes by what is shown (``shown_deadline``), not by what it remembers to have
told.

Homes without a ``key_prefix`` share the page. An evaluation says which home has told it, as the sensor of each goes by
what it finds: by the home, and not by the code location alone, which may get another name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import dagster as dg

from keptlog.dagster.assets.last_results import last_evaluations
from keptlog.dagster.assets.lost_topics import FOLDERS
from keptlog.dagster.assets.mount import Run, Tick, place_of
from keptlog.errors import KeptlogError
from keptlog.log.topic_partition import is_topic_name
from keptlog.passes.observer import Overview

DEADLINE_CHECK = "erasure_deadline"
UNLOOKED, TOLD_BY, HOME = "topics_not_looked_at", "told_by", "home"
"""Names in the metadata of an evaluation."""
_NO_REASON = "a look at it has failed"
_SAME = ("erasures-open-count", "erasures-overdue-count", "not_looked_at", "first_deadline")
"""What is the same in two evaluations that tell the same."""
_READ_BACK = 20
"""Evaluations, where the last one is of another home: what this home has told before is among them."""


@dataclass(frozen=True)
class Teller:
    """Who tells of a home. Homes without a ``key_prefix`` that share a Dagster share the page of erasures too.

    A code location may get another name, and then goes on to look after the home that the old one has told of.
    A tick, or a run, has one, as each question which home it is opens the home's catalog.
    """

    names: Sequence[str]
    """What it calls itself: by its code location, or by the home's path, as a run in a terminal does."""
    which: Callable[[], str | None]
    """``LogStoreResource.which``."""

    @classmethod
    def of(cls, call: Tick | Run) -> Self:
        path = str(call.log_store.path)
        return cls([call.place_label, path] if call.place_label else [path], call.log_store.which)

    @cached_property
    def home(self) -> str | None:
        """Which home it is; a quiet tick, and one of a home without erasures, need not know."""
        return self.which()

    def has_told(self, metadata: Mapping[str, object]) -> bool:
        """Whether an evaluation with this metadata is of the home.

        One of an earlier keptlog does not name it, nor does one from while the catalog could not be read.
        """
        told_by, home = metadata.get(TOLD_BY, self.names[0]), metadata.get(HOME)
        # A code location has one home on a page: a home that was moved, or whose topics are chosen anew, is that.
        if told_by == self.names[0]:
            return True
        return told_by in self.names if home is None else home == self.home


@dataclass(frozen=True, slots=True)
class ToldDeadline:
    """What an evaluation of the check tells. Two are equal if nobody has to be told the second one."""

    passed: bool
    is_error: bool
    numbers: tuple[object, ...]
    unlooked: AbstractSet[str] = frozenset()
    """The topics of which nobody could look how far their erasures are."""
    reasons: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Why, by topic. A store's text may be another one at each look, with the number of its request in it."""
    home: str | None = None
    """Which one has told it, and of which of its topics; null if it did not say it (``Teller.has_told``)."""
    is_anothers: bool = False
    """Whether it is of another home, which has the same page: nothing of it says anything of this one.

    What nobody could look at is what this home has told of last.
    """

    @classmethod
    def by(cls, evaluation: dg.AssetCheckEvaluation, teller: Teller) -> Self:
        metadata = {name: value.value for name, value in evaluation.metadata.items()}
        told, home = metadata.get(UNLOOKED), metadata.get(HOME)
        is_ours = teller.has_told(metadata)
        reasons = {str(topic): str(why or _NO_REASON) for topic, why in told.items()} if isinstance(told, dict) else {}
        return cls(
            evaluation.passed,
            evaluation.severity is dg.AssetCheckSeverity.ERROR,
            tuple(metadata.get(name) for name in _SAME),
            frozenset(reasons if is_ours else ()),
            reasons if is_ours else {},
            None if home is None else str(home),
            is_anothers=not is_ours,
        )

    def need_not_be_told(self, shown: ToldDeadline | None) -> bool:
        """Whether it is what is shown, or another home's word is, and what this home could not look at was told.

        Two homes that answered each other would go on for ever: of another one's word only what is new here is told.
        """
        if shown is None:
            return False
        if shown.is_anothers:
            return shown.unlooked == self.unlooked
        return shown == replace(self, home=self.home or shown.home)

    def still_failed(self, seen: Overview, looked: AbstractSet[str]) -> dict[str, KeptlogError]:
        """Of these topics those at which nobody has looked since, with erasures that may be open; and why."""
        # One that can't be read for a while is not looked at by that. A folder is no topic, and no tick looks there.
        folders = set[str]() if FOLDERS in looked else {name for name in self.reasons if not is_topic_name(name)}
        meant = (seen.open_erasures.keys() | seen.unreadable.keys() | folders) - looked
        return {topic: KeptlogError(why) for topic, why in self.reasons.items() if topic in meant}


_NOTHING = ToldDeadline(passed=False, is_error=False, numbers=())
"""What a run tells that has not evaluated the check: it waits, has failed, or was ended."""


def shown_deadline(call: Tick | Run, teller: Teller) -> ToldDeadline | None:
    """What Dagster shows of the check; null if it shows nothing at all.

    One query, and another one past the word of another home. Past a plan there are two more.
    """
    instance = call.context.instance
    check = dg.AssetCheckKey(call.keys.erasures, DEADLINE_CHECK)
    for record in instance.event_log_storage.get_asset_check_execution_history(check, limit=1):
        # Dagster says that this is an evaluation; it is a plan where nobody has evaluated.
        evaluation: object = record.evaluation
        if isinstance(evaluation, dg.AssetCheckEvaluation):
            newest = ToldDeadline.by(evaluation, teller)
            ours = _last_of_ours(instance, check, teller)[1] if newest.is_anothers else None
            return replace(newest, unlooked=ours.unlooked, reasons=ours.reasons) if ours else newest
        # A plan hides what was told, and has not looked.
        last, ours = _last_of_ours(instance, check, teller)
        nothing = replace(_NOTHING, unlooked=ours.unlooked, reasons=ours.reasons) if ours else _NOTHING
        run = instance.get_run_by_id(record.run_id) if last and last.is_anothers and call.place else None
        return replace(nothing, is_anothers=run is not None and place_of(run) not in (None, *teller.names))
    return None


def _last_of_ours(
    instance: dg.DagsterInstance, check: dg.AssetCheckKey, teller: Teller
) -> tuple[ToldDeadline | None, ToldDeadline | None]:
    """The last evaluation, whoever made it, and the last one of this home."""
    told = [ToldDeadline.by(evaluation, teller) for evaluation, _ in last_evaluations(instance, check, _READ_BACK)]
    return next(iter(told), None), next((each for each in told if not each.is_anothers), None)
