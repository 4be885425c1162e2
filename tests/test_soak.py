"""``make soak`` ends with the first failure and says how it is met again; otherwise when its time is over."""

from __future__ import annotations

import pytest

from tests import soak


@pytest.fixture(autouse=True)
def without_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "_has_kafka", lambda: False)


def test_the_first_failure_ends_it_with_the_line_that_does_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(soak, "PROPERTIES", ("tests/log/test_of_nothing.py",))
    assert soak.main(["--seed", "7", "--minutes", "60"]) == 1
    assert capsys.readouterr().out.endswith(
        "seed 7 fails; again: .venv/bin/python -m pytest -n 2 --hypothesis-profile soak --hypothesis-seed 7 "
        "--exitfirst --quiet tests/log/test_of_nothing.py\n"
    )


def test_it_ends_when_the_round_is_over_in_which_its_time_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(soak, "PROPERTIES", ("tests/log/test_record.py",))
    assert soak.main(["--seed", "7", "--minutes", "0"]) == 0
    assert capsys.readouterr().out == "seed 7: pytest\n1 round from seed 7 on, nothing found\n"


def test_a_round_throws_other_dice_than_the_one_before() -> None:
    one, other = (soak.parts(seed, with_kafka=True) for seed in (7, 8))
    assert all(here != there for here, there in zip(one, other, strict=True))
