"""Which folders of a disk here this user may not write to, though a commit, a purge or a receipt has to.

A glance at the folders where keptlog writes: an access call for each.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from keptlog.folders import listed_or_not, names_in
from keptlog.table.chain.receipt_chain import chain_location
from keptlog.table.io.files import local_path
from keptlog.table.store import LogStore


def shut_in_topic(location: str) -> tuple[str, ...]:
    """Those of the topic that lies there.

    Raises:
        OSError: that of its data can't be listed.
    """
    top = _on_disk(location)
    if top is None:
        return ()
    data, metadata = top / "data", top / "metadata"
    logs = (data / name for name in names_in(data) if name.startswith("partition="))
    return tuple(_shut([top, data, *logs, metadata, metadata / "gc", *listed_or_not(metadata / "receipts")]))


def shut_in_chain(store: LogStore) -> tuple[str, tuple[str, ...]]:
    """Where the chain of receipts lies, and those of it."""
    top = _on_disk(chain_location(store.committer.catalog) or "")
    return (str(top), tuple(_shut([top, top / "metadata", *listed_or_not(top / "receipts")]))) if top else ("", ())


def _on_disk(location: str) -> Path | None:
    """Null if it is on no disk here, or on one that is mounted read-only, which is told as that."""
    local = local_path(location)
    if not local or not os.path.isdir(local) or os.statvfs(local).f_flag & os.ST_RDONLY:  # noqa: PTH112  # a Path may raise
        return None
    return Path(local)


def _shut(folders: Iterable[Path]) -> Iterator[str]:
    for folder in folders:
        # What lies in a folder that can't be entered can't be told; that one is named.
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK) and os.path.isdir(folder):  # noqa: PTH112  # as above
            yield str(folder)
