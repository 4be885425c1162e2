"""Two calls that are made at once, or never end: whoever makes them one after the other waits for ever, and fails."""

from __future__ import annotations

import threading
from typing import Any

import pytest


def let_two_meet(monkeypatch: pytest.MonkeyPatch, of: type, method: str) -> None:
    """Let each call of a method wait until another one is made; what it gives then is as ever."""
    both, real = threading.Barrier(2, timeout=60), getattr(of, method)

    def wait_for_the_other(self: object, *given: Any) -> Any:
        both.wait()
        return real(self, *given)

    monkeypatch.setattr(of, method, wait_for_the_other)
