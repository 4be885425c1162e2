"""Probes of one commit: all of it or nothing, as it was written, and found again when its answer was lost."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.table import CommitTableResponse, Table
from typing_extensions import override

from keptlog.errors import CommitStateUnknown, LogCorrupt, StorageUnavailable
from keptlog.log.words.counted import counted
from keptlog.table.doctor.catalog_probe import Probe, PromiseBroken, require
from keptlog.table.doctor.scratch import Scratch, offsets_in

_LONG = 'ä{"\\' * 8_192
"""As much as what keptlog stores of erasures and marks may take, and more than a column of 4,000 letters."""


def a_commit_is_one(scratch: Scratch) -> str:
    """Records and properties land together, in one version of the metadata, or not at all."""
    scratch.create("one")
    scratch.append("one", 1, {"probe.first": "1"})
    stale = scratch.load("one")
    scratch.append("one", 2, {"probe.second": "2"})
    after = scratch.load("one")
    require(offsets_in(after) == [1, 2], f"after two commits the table shows the records {offsets_in(after)}")
    require(
        (after.properties.get("probe.first"), after.properties.get("probe.second")) == ("1", "2"),
        "a commit's snapshot is there, and its properties are not",
    )
    replaced = [entry.metadata_file for entry in after.metadata.metadata_log]
    if replaced:
        require(
            replaced[-1] == stale.metadata_location,
            "a commit of a snapshot and properties made two versions of the metadata: who reads in between sees half",
        )
    refused = scratch.change(stale, 3, {"probe.third": "3", "probe.second": "wrong"}).written(stale)
    with contextlib.suppress(CommitFailedException, ValidationException):
        refused()
        raise PromiseBroken("a commit on a snapshot that is no longer the current one was accepted")
    again = scratch.load("one")
    require(offsets_in(again) == [1, 2], f"a refused commit has changed the records to {offsets_in(again)}")
    is_whole = again.properties.get("probe.second") == "2" and "probe.third" not in again.properties
    require(is_whole, "a commit was refused, and its properties are there all the same")
    how = "one version of the metadata" if replaced else "the catalog keeps no log of its metadata to count versions by"
    return f"records and properties came together ({how}); of a refused commit there is nothing"


def a_commit_makes_one_snapshot(scratch: Scratch) -> str:
    """The snapshot that was sent is the one that is there."""
    earlier = scratch.create("snapshot")
    for offset in (1, 2, 3):
        sent = scratch.append("snapshot", offset)
        after = scratch.load("snapshot")
        known = {each.snapshot_id for each in earlier.metadata.snapshots}
        new = [each for each in after.metadata.snapshots if each.snapshot_id not in known]
        require(len(new) == 1, f"one commit made {counted(len(new), 'snapshot')}")
        current, before = after.current_snapshot(), earlier.current_snapshot()
        require(current and current.snapshot_id == new[0].snapshot_id, "a commit's snapshot is not the current one")
        is_child = new[0].parent_snapshot_id == (before.snapshot_id if before else None)
        require(is_child, "a commit's snapshot does not say which one it was built on")
        summary = new[0].summary.additional_properties if new[0].summary else {}
        gone = sorted(name for name, text in sent.items() if summary.get(name) != text)
        require(not gone, f"the summary of a snapshot has lost {', '.join(gone)}")
        is_next = after.last_sequence_number == earlier.last_sequence_number + 1
        require(is_next, f"sequence number {earlier.last_sequence_number} is followed by {after.last_sequence_number}")
        earlier = after
    return "each commit made one snapshot, as it was written"


def properties_stay(scratch: Scratch) -> str:
    """Those of other programs, set before and meanwhile; long ones; and one is gone when it is taken away."""
    scratch.create("properties")
    with scratch.load("properties", scratch.open_another()).transaction() as foreign:
        foreign.set_properties({"other.before": "1", "other.taken": "1", "other.long": _LONG})
    scratch.append("properties", 1, {"probe.long": _LONG})
    table = scratch.load("properties")
    with scratch.load("properties", scratch.open_another()).transaction() as foreign:
        foreign.set_properties({"other.meanwhile": "1"})
        foreign.remove_properties("other.taken")
    with contextlib.suppress(CommitFailedException, ValidationException):
        scratch.change(table, 2, {"probe.own": "1"}).land(table)
    found = scratch.load("properties").properties
    for name, when in (("other.before", "before"), ("other.meanwhile", "while")):
        require(found.get(name) == "1", f"a property that another program set {when} keptlog committed is gone")
    for name in ("other.long", "probe.long"):
        require(found.get(name) == _LONG, f"a property of {len(_LONG)} letters is gone, or changed")
    require("other.taken" not in found, "a property that was taken away is there again")
    return f"those of another program stay, before and beside commits; {len(_LONG)} letters stay as they are"


class _FirstAnswerLost(NoopCatalog):
    """A connection whose first commit lands, and is answered with an error, after others have gone on."""

    def __init__(self, real: Catalog, error: Exception, meanwhile: Callable[[], object]) -> None:
        super().__init__(real.name, **real.properties)
        self._real = real
        self._meanwhile = meanwhile
        self._error = error
        self.is_lost = False
        """Whether an answer was."""

    @override
    def load_table(self, identifier: Any) -> Table:
        table = self._real.load_table(identifier)
        table.catalog = self
        return table

    @override
    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        answer = self._real.commit_table(table, requirements, updates)
        if not self.is_lost:
            self._meanwhile()
            self.is_lost = True
            raise self._error
        return answer


def _found_again(scratch: Scratch, name: str, error: Exception) -> str:
    scratch.create(name)
    scratch.append(name, 1)
    other = scratch.open_another()
    catalog = _FirstAnswerLost(scratch.catalog, error, lambda: scratch.append(name, 3, catalog=other))
    try:
        scratch.append(name, 2, catalog=catalog)
    except CommitStateUnknown as unknown:
        raise PromiseBroken(f"it had landed, and could not be found afterwards: {unknown}") from None
    except LogCorrupt as corrupt:
        raise PromiseBroken(f"it had landed, and the table was no longer known as keptlog's: {corrupt}") from None
    if not catalog.is_lost:
        raise StorageUnavailable("the catalog gave no answer before one could be lost on purpose")
    shown = offsets_in(scratch.load(name))
    require(shown == [1, 2, 3], f"the table shows the records {shown}, not [1, 2, 3]: one was lost, or landed twice")
    return "found by its id, although others had committed since: there once"


def a_lost_answer_is_found(scratch: Scratch) -> str:
    """The connection breaks when the commit has landed."""
    return _found_again(scratch, "lost_answer", ConnectionResetError("the answer was lost on purpose"))


def a_wrong_refusal_is_found(scratch: Scratch) -> str:
    """As a client is told that sends a request again by itself."""
    return _found_again(scratch, "wrong_refusal", CommitFailedException("refused on purpose, after it landed"))


_TWICE = "after a lost answer records land twice, or runs end because nobody can say whether they landed"
PROBES = (
    Probe(
        "one commit",
        "records and properties of a commit land together, or not at all",
        "offsets and checkpoints part from the records: keep no topic in this catalog",
        a_commit_is_one,
        loses=True,
    ),
    Probe(
        "one snapshot",
        "a commit makes one snapshot, the one that was sent",
        "commits are taken for another program's, and topics stop until a repair",
        a_commit_makes_one_snapshot,
    ),
    Probe(
        "properties",
        "properties that others set stay, and long ones too",
        "settings of topics and what keptlog knows of its logs may get lost: keep no topic in this catalog",
        properties_stay,
        loses=True,
    ),
    Probe("lost answer", "a commit whose answer was lost is found again", _TWICE, a_lost_answer_is_found, loses=True),
    Probe(
        "wrong refusal",
        "a commit that landed and was reported as refused is found again",
        _TWICE,
        a_wrong_refusal_is_found,
        loses=True,
    ),
)
