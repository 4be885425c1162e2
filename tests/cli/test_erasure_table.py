"""What erasure list prints of many requests: the urgent ones first, and what keeps them once for all of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from keptlog.cli import output
from keptlog.cli.erasure_table import print_erasures
from keptlog.log.erasures.erasure import Erasure, ErasureBound, ErasureState, ReachedState
from keptlog.passes.erasures.erasure_request import ErasureRow
from tests.cli.conftest import Run

NOW_MS = 1_800_000_000_000
DAY_MS = 24 * 3_600_000
LONG = "server.inventory.public.customers.changelog"


def row(
    name: str, deadline_ms: int | None, *, topic: str = "users", ended_ms: int = 0, keys: tuple[str, ...] = ("a" * 64,)
) -> ErasureRow:
    reached = [ReachedState(ErasureState.REQUESTED.value, NOW_MS)]
    reached += [ReachedState(ErasureState.VERIFIED.value, ended_ms)] if ended_ms else []
    bound = ErasureBound(0, 1, 2)
    erasure = Erasure(name, "tombstone", NOW_MS, deadline_ms, "", "0" * 16, keys, (bound,), reached=tuple(reached))
    return ErasureRow(topic, erasure, blocked=() if ended_ms else ("the source still has it",))


def printed(capsys: pytest.CaptureFixture[str], rows: list[ErasureRow]) -> list[str]:
    print_erasures(rows, NOW_MS, empty="none")
    return capsys.readouterr().out.splitlines()


def test_what_keeps_thousands_of_requests_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    """There was a line of 5,000 for each of them."""
    lines = printed(capsys, [row(f"r{number:04}", NOW_MS + DAY_MS) for number in range(5000)])
    assert lines[5001:] == ["r0000, r0001, r0002 and 4997 more in users: the source still has it"]


def test_the_open_ones_stand_first_by_their_deadlines(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row("ended", NOW_MS, ended_ms=NOW_MS + 1), row("none", None), row("late", 1), row("soon", NOW_MS + 1)]
    assert [line.split()[0] for line in printed(capsys, rows)[1:5]] == ["late", "soon", "none", "ended"]


def test_a_request_of_no_key_stands_behind_those_that_somebody_waits_for(capsys: pytest.CaptureFixture[str]) -> None:
    """It stood first, with a deadline of long ago, before those that are overdue."""
    rows = [row("nobody", 0, keys=()), row("ended", NOW_MS, ended_ms=NOW_MS + 1), row("late", 1), row("none", None)]
    assert [line.split()[0] for line in printed(capsys, rows)[1:5]] == ["late", "none", "ended", "nobody"]


def test_what_has_no_room_below_the_table_is_counted_in_requests(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counted lines, of five requests each, and stood in the middle of the text as if it was about the table."""
    monkeypatch.setattr(output, "room", lambda: 80)
    rows = [row(f"{n:030}-{m}", NOW_MS + n * DAY_MS, topic=LONG) for n in range(1, 31) for m in range(5)]
    assert "and 50 more requests: --json and a pipe show all" in printed(capsys, rows)


def test_a_deadline_without_room_in_the_table_is_told_below(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """80 characters had no room for it, and it was told nowhere."""
    monkeypatch.setattr(output, "room", lambda: 80)
    lines = printed(capsys, [row("a" * 32, NOW_MS + DAY_MS, topic=LONG), row("b" * 32, None, topic=LONG)])
    assert [line for line in lines[:3] if len(line) > 80] == []
    assert "overdue" not in lines[0]
    assert f"{'a' * 32} in {LONG}: by 2027-01-16 08:00Z (in 1 d)" in lines
    assert [line for line in lines if "b" * 32 in line and " by " in line] == []


def test_the_list_can_be_of_the_open_and_of_the_overdue_ones_alone(
    keptlog: Run, lines: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keptlog("topic", "create", "users", "--config", "cleanup.policy=compact")
    keptlog("append", "users", "--file", lines({"key": "a", "value": "x"}))
    for name, by in (("r1", "1h"), ("r2", "30d")):
        keptlog("erase", "users", "--key", f"key of {name}", "--yes", "--run-id", name, "--by", by)
    assert keptlog("erasure", "list", "--overdue").out == "no erasure is overdue\n"
    [first, other] = keptlog("erasure", "list", "--open", "--json").json["erasures"]
    monkeypatch.setenv("KEPTLOG_NOW_MS", str(first["deadline_ms"] + 1))
    late = keptlog("erasure", "list", "--overdue", "--json")
    assert (late.code, [each["id"] for each in late.json["erasures"]], other["id"]) == (1, ["r1"], "r2")
