"""By when bytes that are not live are gone, and how people are told what holds them."""

from __future__ import annotations

import pytest

from keptlog.log.holder import NEVER_LATE, ORPHAN_GRACE_MS, Held, HolderKind, Holdings, Terms

DELAY_MS, INTERVAL_MS, DAY_MS = 60_000, 3_600_000, 24 * 3_600_000
TERMS = Terms(DELAY_MS, INTERVAL_MS)


def holdings(*held: Held) -> Holdings:
    return Holdings("users", TERMS, held)


@pytest.mark.parametrize(
    ("kind", "hold_ms"),
    [
        (HolderKind.RETIRED, DELAY_MS),
        (HolderKind.TAG, DELAY_MS),
        (HolderKind.BRANCH, DELAY_MS),
        (HolderKind.STATISTICS, DELAY_MS),
        (HolderKind.STAGED, ORPHAN_GRACE_MS),
        (HolderKind.ORPHAN, ORPHAN_GRACE_MS),
        (HolderKind.JOURNAL, 0),
        (HolderKind.SPARK, 0),
        (HolderKind.OBJECT_VERSION, 0),
    ],
)
def test_a_deadline_is_when_a_purge_may_delete_and_the_time_within_which_one_comes(
    kind: HolderKind, hold_ms: int
) -> None:
    held = Held(kind, 5)
    assert (held.due_ms(TERMS), held.deadline_ms(TERMS)) == (5 + hold_ms, 5 + hold_ms + INTERVAL_MS)
    [before] = holdings(held).holders(5 + hold_ms + INTERVAL_MS)
    [after] = holdings(held).holders(5 + hold_ms + INTERVAL_MS + 1)
    assert (before.is_late, after.is_late) == (False, True)
    assert holdings(held).late(5 + hold_ms + INTERVAL_MS) == []
    assert holdings(held).late(5 + hold_ms + INTERVAL_MS + 1) == [after]


@pytest.mark.parametrize("kind", sorted(NEVER_LATE))
def test_what_holds_no_records_is_told_and_never_late(kind: HolderKind) -> None:
    [holder] = holdings(Held(kind, 5)).holders(2**62)
    assert (holder.deadline_ms, holder.is_late) == (None, False)


def test_a_lock_says_itself_until_when() -> None:
    [holder] = holdings(Held(HolderKind.OBJECT_LOCK, 5, until_ms=DAY_MS)).holders(6)
    assert (holder.until_ms, holder.deadline_ms) == (DAY_MS, DAY_MS + INTERVAL_MS)


@pytest.mark.parametrize("kind", [HolderKind.TAG, HolderKind.BRANCH])
def test_a_tag_or_branch_with_a_retention_says_until_when_and_that_a_purge_drops_it(
    kind: HolderKind,
) -> None:
    of_a_month = holdings(Held(kind, 0, name="audit", kept_until_ms=30 * DAY_MS))
    [early], [late], [over] = (of_a_month.holders(day * DAY_MS) for day in (0, 3, 31))
    assert (early.until_ms, late.until_ms, over.until_ms) == (30 * DAY_MS, 30 * DAY_MS, None)
    assert (early.is_late, late.is_late, over.is_late) == (False, True, True)
    ends = f"until 1970-01-31T00:00:00.000Z: its retention ends then, and keptlog purge users drops the {kind} and"
    assert ends in str(early)
    assert ends in str(late)
    assert "past its deadline" in str(late)
    assert f"remove_{kind}('audit')" in str(late)
    assert f": its retention is over, and keptlog purge users drops the {kind} and" in str(over)


def test_the_files_of_one_holder_are_one_line_that_counts_those_that_are_late() -> None:
    late, young = (
        Held(HolderKind.TAG, 0, 3, 30, "audit_2026", 0),
        Held(HolderKind.TAG, DAY_MS, 11, 110, "audit_2026", 1),
    )
    [holder] = holdings(late, young).holders(DAY_MS)
    assert (holder.files, holder.bytes, holder.late_files, holder.since_ms) == (14, 140, 3, 0)
    assert str(holder) == (
        "tag audit_2026 of users keeps 14 retired segments, 3 past their deadline (1970-01-01T01:01:00.000Z): drop the "
        "tag, in Spark SQL ALTER TABLE <catalog>.keptlog.`users` DROP TAG `audit_2026`, or in PyIceberg "
        "table.manage_snapshots().remove_tag('audit_2026').commit(), or agree that what it shows stays; after that "
        "keptlog purge users deletes it"
    )


def test_a_log_has_the_holders_of_its_partition_and_of_the_whole_topic() -> None:
    found = holdings(
        Held(HolderKind.RETIRED, 0, partition=0), Held(HolderKind.RETIRED, 0, partition=1), Held(HolderKind.STAGED, 0)
    )
    assert [(each.kind, each.files) for each in found.holders(1, 1)] == [("retired", 1), ("staged", 1)]
    assert str(found.holders(1, 1)[0]).startswith("older snapshots of users-1 keep 1 retired segment until 1970")
    assert [(each.kind, each.files) for each in found.holders(1)] == [("retired", 2), ("staged", 1)]


def test_what_was_not_counted_is_late_all_the_same() -> None:
    [holder] = holdings(Held(HolderKind.TAG, 0, None, None, "audit")).holders(DAY_MS)
    assert (holder.files, holder.bytes, holder.is_late) == (None, None, True)
    assert str(holder).startswith("tag audit of users keeps retired segments, past their deadline (")


def test_what_is_late_comes_first() -> None:
    found = holdings(Held(HolderKind.RETIRED, DAY_MS), Held(HolderKind.TAG, 0, name="x")).holders(DAY_MS)
    assert [each.kind for each in found] == [HolderKind.TAG, HolderKind.RETIRED]


@pytest.mark.parametrize("kind", list(HolderKind))
def test_every_kind_is_one_line_with_a_remedy(kind: HolderKind) -> None:
    [holder] = holdings(Held(kind, 0, 2, 10, "x")).holders(1)
    assert "{" not in str(holder)
    assert "users" in str(holder)
    assert str(holder).count("\n") == 0


@pytest.mark.parametrize("number", [None, 2])
@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (HolderKind.STATISTICS, "files with statistics"),
        (HolderKind.ELSEWHERE, "replaced files outside of its folder"),
        (HolderKind.CACHE, "outdated cache files"),
    ],
)
def test_several_files_are_told_in_a_plural_that_people_write(kind: HolderKind, what: str, number: int | None) -> None:
    [holder] = holdings(Held(kind, 0, number, 10)).holders(1)
    counted = what if number is None else f"{number} {what}"
    assert f" keep {counted}" in str(holder)
