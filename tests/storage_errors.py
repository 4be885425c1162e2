"""What a disk answers that is not whole, or that is another machine's: tests run as root, whom no permission stops."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from typing import Any

import pytest


def unlisted(monkeypatch: pytest.MonkeyPatch, ending: str, number: int = errno.EIO) -> None:
    """From now on folders whose paths end so can't be listed; what lies in them can be opened."""
    really = os.scandir

    def scandir(path: Any = ".") -> Iterator[os.DirEntry[str]]:
        if str(path).endswith(ending):
            raise OSError(number, os.strerror(number), str(path))
        return really(path)

    monkeypatch.setattr(os, "scandir", scandir)
