"""The ``keptlog`` command on a home at a time, in this process."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from keptlog.cli import main
from tests.as_of import apart


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def keptlog(home: Path, now_ms: int, *arguments: str) -> Outcome:
    """Run ``keptlog`` with these arguments, as if typed at that time."""
    out, err, code = io.StringIO(), io.StringIO(), None
    environment = {"KEPTLOG_HOME": str(home), "KEPTLOG_NOW_MS": str(now_ms)}
    with (
        mock.patch.dict(os.environ, environment),
        mock.patch.object(sys, "argv", ["keptlog", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as exited:
            code = exited.code
    return Outcome(code if isinstance(code, int) else 0, out.getvalue(), apart(err.getvalue())[1])
