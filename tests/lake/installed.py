"""What a lake's tests need of this machine, or the reason why they are not tried here."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

import pytest

from examples.installed import NotInstalled

T = TypeVar("T")


@contextmanager
def or_skip(server: AbstractContextManager[T]) -> Iterator[T]:
    """A server for as long as the block lasts; skips where it can't be had. On a build server with Maven it must be."""
    try:
        started = server.__enter__()
    except NotInstalled as missing:
        if os.environ.get("CI") == "true" and shutil.which("mvn"):
            raise
        pytest.skip(f"not tried on a lake: {missing}")
    try:
        yield started
    finally:
        server.__exit__(None, None, None)
