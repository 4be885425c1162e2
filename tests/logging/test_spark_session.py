"""A Spark session that starts is one line, which tells where its tasks run; asked for again, it is none."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

CODE = """
import logging
from keptlog.spark.session import start_session
logging.getLogger("keptlog").addHandler(logging.StreamHandler())
logging.getLogger("keptlog").setLevel(logging.DEBUG)
for _ in range(2):
    start_session("local[1]")
"""


def test_a_session_that_starts_is_one_line() -> None:
    command = [sys.executable, "-c", CODE]
    said = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]).stderr
    ours = [line for line in said.splitlines() if line.startswith("Spark ")]
    assert len(ours) == 1, said
    assert re.fullmatch(r"Spark [\d.]+ is started: master local\[1\], application local-\d+", ours[0])
