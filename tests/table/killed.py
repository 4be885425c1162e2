"""A process that dies before any one of the things that it does to storage, catalog or receipts.

To die after one is to die before the next, so this is every moment at which a kill makes a difference, but for those in
the middle of a write.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyiceberg.catalog.sql import SqlCatalog

from keptlog.table.io.files import TableFiles
from keptlog.table.store import LogStore
from tests.table.purges import sealing_into
from tests.table.stores import store_at

_EFFECTS: list[tuple[type, str]] = [
    (TableFiles, "write_bytes"),
    (TableFiles, "delete"),
    (SqlCatalog, "commit_table"),
    (SqlCatalog, "rename_table"),
    (SqlCatalog, "drop_table"),
    (SqlCatalog, "create_namespace"),
]
_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["tests.table.killed"])

Act = Callable[[LogStore], object]


def sealing_store(home: Path) -> LogStore:
    """A store whose receipts are sealed into a folder beside the home's warehouse."""
    store = store_at(home)
    store.seal = sealing_into(home / "chain")
    return store


def killed_before(home: Path, act: Act, number: int) -> bool:
    """Do something in a process that dies before its effect of this number, from 0; gives whether it had so many."""
    process = _PROCESSES.Process(target=_act, args=(home, act, number))
    process.start()
    process.join()
    assert process.exitcode in {0, -signal.SIGKILL}, f"it ended by itself: {process.exitcode}"
    return process.exitcode != 0


def put_back(saved: Path, home: Path) -> None:
    """Make a home what it was, at the same place: elsewhere it would be a copy."""
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(saved, home)


def _act(home: Path, act: Act, number: int) -> None:
    left = [number]

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def effect(*arguments: Any, **named: Any) -> Any:
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return real(*arguments, **named)

        return effect

    for kind, name in _EFFECTS:
        setattr(kind, name, dying(getattr(kind, name)))
    store = sealing_store(home)
    assert store.seal
    store.seal = dying(store.seal)
    act(store)
