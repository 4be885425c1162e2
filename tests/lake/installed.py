"""What a lake's tests need of this machine, or the reason why they are not tried here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

import pytest

from examples.installed import NotInstalled

T = TypeVar("T")


@contextmanager
def or_skip(server: AbstractContextManager[T]) -> Iterator[T]:
    """A server for as long as the block lasts; skips where it can't be had."""
    try:
        started = server.__enter__()
    except NotInstalled as missing:
        pytest.skip(f"not tried on a lake: {missing}")
    try:
        yield started
    finally:
        server.__exit__(None, None, None)
