"""The open erasures of a topic that is being deleted: they end with it, and the receipt of the deletion tells them.

Their register lies in the topic's folder, and goes with all else there. Whoever has to answer for a request would find
no trace of it. So it is read before anything goes, and stands in the journal, which outlives a kill.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from keptlog.errors import LogCorrupt
from keptlog.log.erasures.erasure import Erasure
from keptlog.table.io.files import TableFiles
from keptlog.table.metadata.stored_json import from_json
from keptlog.table.removal.drafts import read_draft
from keptlog.table.removal.erasure_register import read_erasures
from keptlog.table.removal.journal import DELETION, EndedErasure, Journal, write_journal
from keptlog.table.waiting.reach import OUT_OF_REACH, FailureKind, failure_of
from keptlog.table.waiting.reaching import one_line

if TYPE_CHECKING:
    from pyiceberg.table import Table


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


def own_deletions(journals: Mapping[str, Journal], table_id: str) -> dict[str, Journal]:
    """Those of a table's own deletion, by path: one of an earlier topic may lie in the folder, and knows only of that.

    A journal of an older keptlog does not say whose it is, and counts as the table's own.
    """
    return {
        path: each for path, each in journals.items() if each.kind == DELETION and each.table_uuid in {None, table_id}
    }


def with_erasures(
    files: TableFiles,
    journals: Mapping[str, Journal],
    erasures: tuple[EndedErasure, ...] | None,
    table_id: str,
    before: ToldBefore,
) -> dict[str, Journal]:
    """The journals, those of a table's deletion with what ends with it where they don't know.

    An older keptlog began the deletion, or went on with it, and did not look. What is found is written down, so that it
    outlives a kill. Call it before anything goes.
    """
    mine = {path: journal.erasures for path, journal in own_deletions(journals, table_id).items()}
    unknown = sorted(path for path, told in mine.items() if told is None)
    # One that has them tells of all, and so does a receipt: a newer keptlog began, and an older one went on.
    is_told = any(mine.values()) or bool(before.erasures)
    # The register comes before a receipt that names none: such a one may be of a later journal, which never does.
    known = () if is_told else before.erasures if erasures is None else erasures
    if not unknown or known is None:
        return dict(journals)
    told = {unknown[0]: known} | dict.fromkeys(unknown[1:], ())
    found = {path: replace(journals[path], erasures=each) for path, each in told.items()}
    for path, journal in found.items():
        write_journal(files, path, journal)
    return {**journals, **found}


@dataclass(frozen=True, slots=True)
class ToldBefore:
    """What receipts of earlier calls of a deletion tell: what they were made from is gone."""

    is_any: bool = False
    """Whether there is such a receipt."""
    erasures: tuple[EndedErasure, ...] | None = None
    """Null if none tells of them."""

    def and_of(self, content: Mapping[str, Any], where: str) -> ToldBefore:
        """With what one more receipt tells."""
        told = content.get("erasures")
        if told is None:
            return replace(self, is_any=True)
        found = from_json(tuple[EndedErasure, ...], json.dumps(told), where, "receipt", "delete the topic again")
        return ToldBefore(is_any=True, erasures=tuple(dict.fromkeys((*(self.erasures or ()), *found))))


def told_before(
    files: TableFiles, drafts: Iterable[str], table_id: str, sealed: Iterable[Mapping[str, Any]]
) -> ToldBefore:
    """What is told of a table's deletion by drafts that wait for their seal, and by contents of sealed receipts."""
    told = ToldBefore()
    for path in drafts:
        with contextlib.suppress(FileNotFoundError, LogCorrupt):
            draft = read_draft(files, path)
            if draft.kind == DELETION and draft.content.get("table_uuid") == table_id:
                told = told.and_of(draft.content, path)
    for content in sealed:
        with contextlib.suppress(LogCorrupt):
            told = told.and_of(content, "the chain of receipts")
    return told


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
