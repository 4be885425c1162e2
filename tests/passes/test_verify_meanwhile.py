"""What others find broken while a long verify goes on is not forgotten because that had found the log whole before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from keptlog.home import open_home
from keptlog.notify.checks import broken_checks, leave_checks
from keptlog.passes import verify_pass
from keptlog.passes.check import CheckResult
from keptlog.passes.verify import verify_log


def test_a_break_that_another_found_in_a_log_that_was_read_before_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = open_home(tmp_path, {})
    home.store.create_topic("users", 2, {"cleanup.policy": "compact"})
    read: list[int] = []

    def found_at_the_second(*given: Any) -> list[CheckResult]:
        if read:
            leave_checks(tmp_path, {"users-0": {"G1": "a value has rotted"}})
        read.append(len(read))
        return list(verify_log(*given))

    monkeypatch.setattr(verify_pass, "verify_log", found_at_the_second)
    assert all(each.passed for results in home.verify().values() for each in results)

    assert len(read) == 2
    assert broken_checks(tmp_path) == {"users-0": {"G1": "a value has rotted"}}
