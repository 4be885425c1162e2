"""A catalog of another program's, whose client has one connection."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from typing_extensions import override


class OneConnection(NoopCatalog):
    """Two calls at once would get each other's answers; here they are seen."""

    most_at_once: ClassVar[int] = 0

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        self._real = SqlCatalog(name, **properties)
        self._under_way = 0
        self._lock = threading.Lock()

    @contextmanager
    def _call(self) -> Iterator[SqlCatalog]:
        with self._lock:
            self._under_way += 1
            OneConnection.most_at_once = max(OneConnection.most_at_once, self._under_way)
        time.sleep(0.01)
        try:
            yield self._real
        finally:
            with self._lock:
                self._under_way -= 1

    @override
    def load_table(self, identifier: Any) -> Table:
        with self._call() as real:
            return real.load_table(identifier)

    @override
    def list_tables(self, namespace: Any) -> list[Any]:
        with self._call() as real:
            return real.list_tables(namespace)
