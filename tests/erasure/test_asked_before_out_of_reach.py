"""Whoever can't look whether a request was verified before is told what helps with that, and asks nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from keptlog.errors import StorageUnavailable
from keptlog.passes.erasures.asked_before import AskedBefore


@pytest.mark.parametrize(
    "error",
    [
        StorageUnavailable("receipts can't be listed: no answer"),
        StorageUnavailable("receipts can't be listed: access is denied").for_good(),
        StorageUnavailable("receipts can't be listed: the catalog's database is damaged").of_damage(),
    ],
)
def test_what_helps_is_told_as_the_look_told_it(error: StorageUnavailable) -> None:
    """Of a catalog that is damaged, a program was told to try again."""

    def refuse() -> NoReturn:
        raise error

    topic: Any = SimpleNamespace(id="11111111-2222-3333-4444-555555555555", name="users")
    with pytest.raises(StorageUnavailable, match=f"so nothing is asked: {error}") as told:
        AskedBefore("r1", refuse).require_new(topic)
    assert told.value.action is error.action
