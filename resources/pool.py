"""The pool that bounds how many cleans run at once; the sensors set its size to ``log.cleaner.threads`` of their home.

A pool is one for a whole Dagster. Where several code locations share a Dagster, each home has its own number of
threads, so each code server is given a pool of its own: ``KEPTLOG_POOL=log_cleaner_orders``.
"""

from __future__ import annotations

import os

POOL = os.environ.get("KEPTLOG_POOL") or "log_cleaner"
"""Read once: Dagster takes an op's pool when the op is defined."""
