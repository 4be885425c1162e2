"""Run ids: what names a run, and all of its repeats that are to do nothing twice.

A run id stands in names of files and folders, and in snapshots. So it has the characters that all storages take, and
leaves room for what stands beside it in a name.
"""

from __future__ import annotations

import re

from keptlog.errors import InvalidConfig
from keptlog.log.given.given import text

_LONGEST = 100
_FORM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def valid_run_id(run_id: str) -> str:
    """The same id.

    Raises:
        InvalidConfig: it is too long, or has characters that a file name can't have everywhere.
    """
    run_id = text(run_id, "a run id")
    if len(run_id) > _LONGEST or not _FORM.fullmatch(run_id):
        shown = run_id if len(run_id) <= _LONGEST else f"{run_id[:_LONGEST]}…"
        raise InvalidConfig(
            f"run id {shown!r} is not possible: use 1 to {_LONGEST} letters, digits, '.', '_' and '-', "
            "and begin with a letter or a digit"
        )
    return run_id
