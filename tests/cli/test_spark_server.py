"""``keptlog spark-server``, refused before anything is started."""

from __future__ import annotations

import pytest

from keptlog.spark.server import TOKEN
from tests.cli.conftest import Run


def test_an_empty_token_is_refused_because_it_would_let_everybody_in(
    keptlog: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN, "")
    done = keptlog("spark-server")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"keptlog: {TOKEN} is empty")
    assert len(done.err.splitlines()) == 1


def test_a_session_id_that_is_none_is_refused(keptlog: Run) -> None:
    done = keptlog("spark-server", "--session-id", "mine")
    assert done.code == 2
    assert "'mine' is not a valid UUID" in done.err
