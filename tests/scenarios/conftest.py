from __future__ import annotations

import os

import pytest


@pytest.fixture
def rewrite_scenarios() -> bool:
    """Whether what was run is written into the files as what is expected, for a person to review."""
    return bool(os.environ.get("KEPTLOG_REWRITE"))
