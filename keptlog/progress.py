"""What long work tells those who wait for it."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], None]
"""Takes one line about what is being done now."""


def silent(_: str) -> None:
    """Tells nobody."""
