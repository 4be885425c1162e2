"""As ``worker_daemon``, of a Spark that does keptlog's tasks and nothing else: its workers do without pandas.

Importing it takes half of the second in which the first worker of a small clean is made. A worker for somebody's own
functions may not lack it, so this is for a command's process alone.
"""

from __future__ import annotations

from keptlog.arrow_alone import spare_pandas

spare_pandas()

import runpy  # noqa: E402

if __name__ == "__main__":
    runpy.run_module("keptlog.spark.worker_daemon", run_name="__main__")
