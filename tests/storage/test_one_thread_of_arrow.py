"""Where Arrow has one thread for reading (``ARROW_IO_THREADS=1``), nothing waits for itself for ever."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

MAPPING = """
import sys
import pyarrow.parquet as pq
from keptlog.storage.versions import latest_by_offset

file = pq.ParquetFile(sys.argv[1])
tables = (file.read_row_group(n, use_threads=False) for n in range(file.num_row_groups))
print(len(latest_by_offset(tables)))
"""


def test_keys_are_mapped_from_a_stream_that_reads_files(tmp_path: Path) -> None:
    keys = [b"%06d" % (number % 70_000) for number in range(140_000)]
    pq.write_table(pa.table({"key": keys, "offset": range(140_000)}), tmp_path / "keys.parquet", row_group_size=20_000)
    command = [sys.executable, "-c", MAPPING, str(tmp_path / "keys.parquet")]
    env = {"ARROW_IO_THREADS": "1"}
    done = subprocess.run(command, env=env, check=False, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("70000\n", "")
