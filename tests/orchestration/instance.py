"""A Dagster instance for a test, with databases of its own.

Dagster makes and migrates three databases for each, a third of a second of CPU. So they are made once a process, and
copied.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import dagster as dg


@contextmanager
def fresh_instance() -> Iterator[dg.DagsterInstance]:
    """An instance that knows of nothing; it is gone with the block."""
    with tempfile.TemporaryDirectory(prefix="keptlog-dagster-") as folder:
        shutil.copytree(_template().name, folder, dirs_exist_ok=True)
        with dg.instance_for_test(temp_dir=folder) as instance:
            yield instance


@lru_cache(maxsize=1)
def _template() -> tempfile.TemporaryDirectory[str]:
    """A folder with the databases of an instance; it is gone with the process."""
    made = tempfile.TemporaryDirectory(prefix="keptlog-dagster-")
    with dg.instance_for_test(temp_dir=made.name) as instance:
        # Each question makes the database that it is asked of.
        assert instance.get_runs_count() == 0
        assert instance.event_log_storage.get_maximum_record_id() is None
        assert not instance.all_instigator_state()
    return made
