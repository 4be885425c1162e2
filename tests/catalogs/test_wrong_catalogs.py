"""Each probe says ``broken`` of a catalog that is wrong in what it asks, and of no other reason: it is kept without."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from keptlog.table.doctor.catalog_probe import Answer
from tests.catalogs import wrong
from tests.catalogs.scratches import NAMES, left_in, results_of, scratch_of

DEFECTS: list[tuple[type[SqlCatalog], str, str]] = [
    (wrong.SettingsForgotten, "tables", "properties that a table was made with are gone.*commit.retry.num-retries"),
    (wrong.SmallLetters, "names", "a table made as Orders_EU is called orders_eu"),
    (wrong.NoRename, "rename", "NotImplementedError: this catalog does not rename tables"),
    (wrong.CopiesInstead, "rename", "can be loaded by its old name"),
    (wrong.TableIdsForgotten, "same name", "written for an earlier table of a name has landed in the later one"),
    (wrong.LastWriterWins, "compare and swap", r"\d+ of 10 writers on one snapshot were told that they had landed"),
    (wrong.OneCommitOnly, "compare and swap", "all 10 writers on one snapshot were refused"),
    (wrong.FirstRowsLost, "empty table", r"\d+ of 10 writers on an empty table were told .* are not there"),
    (wrong.LastWriterWins, "one commit", "no longer the current one was accepted"),
    (wrong.PropertiesFirst, "one commit", "two versions|properties are there all the same"),
    (wrong.PropertiesLater, "one commit", "two versions of the metadata"),
    (wrong.SnapshotsOfItsOwn, "one snapshot", "one commit made 2 snapshots"),
    (wrong.SummariesLost, "one snapshot", "the summary of a snapshot has lost .*keptlog.commit-id"),
    (wrong.ForeignPropertiesLost, "properties", "another program set while keptlog committed is gone"),
    (wrong.ShortProperties, "properties", "a property of 32768 letters is gone, or changed"),
    (wrong.SummariesLost, "lost answer", r"shows the records \[1, 2, 2, 3\]"),
    (wrong.OneSnapshotShown, "lost answer", "it had landed, and could not be found afterwards"),
    (wrong.SummariesLost, "wrong refusal", r"shows the records \[1, 2, 2, 3\]"),
    (wrong.OneSnapshotShown, "wrong refusal", "it had landed, and could not be found afterwards"),
    (wrong.OneSnapshotShown, "snapshots", "of 5 snapshots 1 are listed"),
    (wrong.OldestShown, "fresh reads", "another connection loads the table as it was before"),
    (wrong.ExpiresTooMuch, "expiry", "snapshots are gone that nobody has expired"),
    (wrong.ExpiresNothing, "expiry", "snapshots that were expired are still there"),
]


@pytest.mark.parametrize(("kind", "name", "seen"), DEFECTS, ids=lambda each: getattr(each, "__name__", None))
def test_a_defect_is_seen_by_the_probe_that_asks_for_it(
    tmp_path: Path, kind: type[SqlCatalog], name: str, seen: str
) -> None:
    [result] = results_of(scratch_of(tmp_path, kind), name)
    assert result.answer is Answer.BROKEN, result.seen
    assert re.search(seen, result.seen), result.seen
    assert "\n" not in result.seen
    assert left_in(tmp_path) == []


def test_every_probe_was_seen_to_fail() -> None:
    assert {name for _, name, _ in DEFECTS} == set(NAMES)


def test_a_catalog_that_forgets_first_rows_alone_passes_on_a_table_with_rows(tmp_path: Path) -> None:
    [result] = results_of(scratch_of(tmp_path, wrong.FirstRowsLost), "compare and swap")
    assert result.answer is Answer.KEPT, result.seen


@pytest.mark.parametrize("name", ["one commit", "compare and swap", "empty table", "snapshots"])
def test_what_can_t_be_reached_is_not_looked_at(tmp_path: Path, name: str) -> None:
    [result] = results_of(scratch_of(tmp_path, wrong.Unreachable), name)
    assert result.answer is Answer.NOT_LOOKED_AT, result.seen
    assert "nobody is there" in result.seen


def test_one_that_hangs_ends_the_looking_and_the_others_say_why(tmp_path: Path) -> None:
    first, second = results_of(scratch_of(tmp_path, wrong.Hangs), "one commit", "one snapshot", patience_seconds=1)
    assert (first.answer, first.seen) == (Answer.NOT_LOOKED_AT, "no answer within 1 s")
    assert (second.answer, second.seen) == (Answer.NOT_LOOKED_AT, "not tried any more: one commit got no answer")
