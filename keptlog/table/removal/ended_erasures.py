"""The open erasures of a topic that is being deleted: they end with it, and the receipt of the deletion tells them.

Their register lies in the topic's folder, and goes with all else there. Whoever has to answer for a request would find
no trace of it. So it is read before anything goes, and stands in the journal, which outlives a kill.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from keptlog.errors import LogCorrupt
from keptlog.log.erasures.erasure import Erasure
from keptlog.receipts.receipt import Draft
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.state import read_open_erasures
from keptlog.table.metadata.stored_json import from_json
from keptlog.table.removal.drafts import read_draft, waiting_drafts
from keptlog.table.removal.erasure_register import read_erasures
from keptlog.table.removal.journal import DELETION, EndedErasure, Journal, write_journal
from keptlog.table.waiting.reach import OUT_OF_REACH, FailureKind, failure_of
from keptlog.table.waiting.reaching import one_line

if TYPE_CHECKING:
    from pyiceberg.table import Table

Sealed = Callable[[str], Iterable[Mapping[str, Any]]]
"""What the chain's receipts tell of the deletion of a table, by its id."""


def ended_erasures(files: TableFiles, table: Table) -> tuple[tuple[EndedErasure, ...] | None, str]:
    """The open erasures of a topic, oldest first; null if they can't be read, and why: it is deleted without.

    Raises:
        OSError: the storage does not answer. Nothing was deleted yet, so the same call again may still read them.
    """
    try:
        remembered = read_erasures(files, table)
    except LogCorrupt as error:
        return None, one_line(error)
    except OUT_OF_REACH as error:
        if failure_of(error) is not FailureKind.REFUSED:
            raise
        return None, one_line(error)
    return tuple(map(_ended, (each for each in remembered if each.is_open))), ""


def counted_open(table: Table) -> int:
    """How many are open, as the table says itself; 0 if it does not say."""
    try:
        return read_open_erasures(table.name()[-1], table.properties).count
    except LogCorrupt:
        return 0


def own_deletions(journals: Mapping[str, Journal], table_id: str) -> dict[str, Journal]:
    """Those of a table's own deletion, by path: one of an earlier topic may lie in the folder, and knows only of that.

    A journal of an older keptlog does not say whose it is, and counts as the table's own.
    """
    return {
        path: each for path, each in journals.items() if each.kind == DELETION and each.table_uuid in {None, table_id}
    }


@dataclass(frozen=True, slots=True)
class ToldBefore:
    """What receipts of a deletion tell: what they were made from is gone."""

    is_any: bool = False
    """Whether there is such a receipt."""
    erasures: tuple[EndedErasure, ...] = ()
    """All that they name."""
    is_untold: bool = False
    """Whether one says that nobody knows."""

    def and_of(self, content: Mapping[str, Any], where: str) -> ToldBefore:
        """With what one more receipt tells."""
        told = content.get("erasures")
        if told is None:
            return replace(self, is_any=True, is_untold=True)
        found = from_json(tuple[EndedErasure, ...], json.dumps(told), where, "receipt", "delete the topic again")
        return replace(self, is_any=True, erasures=tuple(dict.fromkeys((*self.erasures, *found))))

    def and_of_draft(self, draft: Draft, table_id: str, where: str) -> ToldBefore:
        """With what a draft tells, if it is of a table's deletion."""
        is_meant = draft.kind == DELETION and draft.content.get("table_uuid") == table_id
        return self.and_of(draft.content, where) if is_meant else self


def told_before(
    files: TableFiles,
    drafts: Iterable[str],
    table_id: str,
    sealed: Iterable[Mapping[str, Any]] = (),
    told: ToldBefore | None = None,
) -> ToldBefore:
    """What is told of a table's deletion by drafts that wait for their seal, and by contents of sealed receipts."""
    told = told or ToldBefore()
    for path in drafts:
        with contextlib.suppress(FileNotFoundError, LogCorrupt):
            told = told.and_of_draft(read_draft(files, path), table_id, path)
    for content in sealed:
        with contextlib.suppress(LogCorrupt):
            told = told.and_of(content, "the chain of receipts")
    return told


@dataclass
class Ending:
    """Who tells what of the erasures that end with one topic. Each is to be in one receipt, and none is to be denied.

    the register can be read   it alone says what is open. A journal may be of a deletion that was taken back, and have
                               the list of then; or of an older keptlog, which did not look. So their lists are set
                               right, and the first of them gets what neither they nor receipts name
    it can't                   it is gone, or damaged: what journals and receipts name has ended. If they name none, and
                               one of them could not tell, or fewer than the table counts, nobody can, and whatever is
                               written from now on says so
    """

    files: TableFiles
    location: str
    table_id: str
    register: tuple[EndedErasure, ...] | None
    """The open ones; null if they can't be read."""
    why_unread: str = ""
    counted: int = 0
    """How many are open at least."""
    before: ToldBefore = field(default_factory=ToldBefore)
    ended: tuple[EndedErasure, ...] | None = ()
    """What is known to end with the topic; null if nobody can tell."""

    def look(
        self, own: Mapping[str, Journal], drafts: Iterable[str], sealed: Sealed, *, is_chain_asked: bool
    ) -> ToldBefore:
        """See what receipts tell; the chain is asked only if it must be, or where the others don't tell all."""
        self.before = told_before(self.files, drafts, self.table_id, told=self.before)
        if is_chain_asked or self._lacks(own):
            # Another call may have settled a journal since those were listed: its draft was there before it went, and
            # is there until it is in the chain.
            drafts = waiting_drafts(self.files, [self.location])
            self.before = told_before(self.files, drafts, self.table_id, told=self.before)
            self.before = told_before(self.files, (), self.table_id, sealed(self.table_id), self.before)
        return self.before

    def note(self, draft: Draft) -> None:
        """Take down that a receipt was written."""
        self.before = self.before.and_of_draft(draft, self.table_id, draft.id)

    def set_right(self, journals: Mapping[str, Journal]) -> dict[str, Journal]:
        """The journals, those of the deletion with what ends with it, as far as it is known.

        What is found is written down, so that it outlives a kill. Call it before anything goes.
        """
        own = own_deletions(journals, self.table_id)
        lists = self._lists(own)
        changed = [path for path in own if own[path].erasures != lists[path]]
        # Who gets something comes first: after a kill in between, two name it, and not none.
        changed.sort(key=lambda path: (len(own[path].erasures or ()) - len(lists[path] or ()), path))
        found = {path: replace(own[path], erasures=lists[path]) for path in changed}
        for path, journal in found.items():
            write_journal(self.files, path, journal)
        self._tell([*lists.values()] or [self.of_new(own)])
        return {**journals, **found}

    def of_new(self, own: Mapping[str, Journal]) -> tuple[EndedErasure, ...] | None:
        """What one more journal is to tell; none if those that are there, or receipts, tell all."""
        if self.register is not None:
            return () if own else tuple(self._missing(own))
        if self._are_named(own):
            return ()
        is_told = (own or self.before.is_any) and not (self.before.is_untold or self.counted)
        return () if is_told and all(each.erasures is not None for each in own.values()) else None

    def _lists(self, own: Mapping[str, Journal]) -> dict[str, tuple[EndedErasure, ...] | None]:
        if self.register is None:
            are_named = self._are_named(own)
            told = {path: each.erasures or (() if are_named else None) for path, each in own.items()}
            return told if are_named or self.counted else {path: each.erasures for path, each in own.items()}
        left = {each.request: each for each in self.register}
        lists: dict[str, tuple[EndedErasure, ...] | None] = {}
        for path in sorted(own):
            # One that does not say whose it is may be of an earlier topic, and tell of others' erasures.
            is_older = own[path].table_uuid is None
            named = [each for each in own[path].erasures or () if is_older or each.request in left]
            lists[path] = tuple(left.pop(each.request, each) for each in named)
        if own:
            first = min(own, key=lambda path: (own[path].erasures is not None, path))
            lists[first] = (*(lists[first] or ()), *self._missing(own))
        return lists

    def _lacks(self, own: Mapping[str, Journal]) -> bool:
        unknown = self.register is None or any(each.erasures is None for each in own.values())
        return unknown or bool(own and self._missing(own))

    def _missing(self, own: Mapping[str, Journal]) -> list[EndedErasure]:
        """What is open, and in no receipt and none of these journals."""
        named = self._named(own)
        return [each for each in self.register or () if each.request not in named]

    def _are_named(self, own: Mapping[str, Journal]) -> bool:
        """Whether receipts or these journals name some, and as many as are open: fewer are those of then."""
        return len(self._named(own)) >= max(self.counted, 1)

    def _named(self, own: Mapping[str, Journal]) -> set[str]:
        listed = [self.before.erasures, *(journal.erasures or () for journal in own.values())]
        return {each.request for erasures in listed for each in erasures}

    def _tell(self, lists: Iterable[tuple[EndedErasure, ...] | None]) -> None:
        lists = list(lists)
        named = dict.fromkeys((*self.before.erasures, *(each for found in lists for each in found or ())))
        if self.register is not None:
            self.ended = self.register
        else:
            is_untold = None in lists or self.before.is_untold or self.counted
            self.ended = None if is_untold and not named else tuple(named)


def _ended(erasure: Erasure) -> EndedErasure:
    return EndedErasure(
        erasure.id,
        erasure.way,
        erasure.reason,
        erasure.state.value,
        erasure.requested_ms,
        erasure.deadline_ms,
        erasure.fingerprint,
        erasure.key_hashes,
    )
