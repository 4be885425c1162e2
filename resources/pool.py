"""The pool that bounds how many cleans run at once; the sensors set its size to ``log.cleaner.threads`` of their home.

A pool is one for a whole Dagster, and each home has its own number of threads. So each home is given a pool of its own:
by a prefix of its names (``build_defs(name_prefix=...)``), or, where the definitions are those that come with keptlog,
by a variable of the code server: ``KEPTLOG_POOL=log_cleaner_orders``.
"""

from __future__ import annotations

import os


def pool_name(name_prefix: str) -> str:
    """The pool of a home; asked once, because Dagster takes an op's pool when the op is defined."""
    return name_prefix + (os.environ.get("KEPTLOG_POOL") or "log_cleaner")
