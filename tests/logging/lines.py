"""The lines that keptlog has logged, as tests look at them."""

from __future__ import annotations

import logging

import pytest


def lines(caplog: pytest.LogCaptureFixture, level: int = logging.INFO) -> list[tuple[str, str]]:
    """Level and text of each line of this level and above."""
    ours = (record for record in caplog.records if record.name.startswith("keptlog.") and record.levelno >= level)
    return [(record.levelname, record.getMessage()) for record in ours]
