"""What was printed is not printed again, wherever Ctrl-C comes in between."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter

import pytest

LINES = 4000
_INTERRUPTED_AS_IT_PRINTS = """
import signal, sys
from keptlog.streams import guard_output

guard_output()
is_printing, came = False, 0

def interrupt(number, frame):
    global is_printing, came
    if is_printing:
        is_printing = False
        came += 1
        raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
for line in range(int(sys.argv[2])):
    try:
        is_printing = True
        print(f"<{line}>", file=getattr(sys, sys.argv[1]), flush=True)
        is_printing = False
    except KeyboardInterrupt:
        pass
signal.setitimer(signal.ITIMER_REAL, 0)
sys.exit(came == 0)
"""


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_no_line_is_printed_twice(stream: str) -> None:
    command = [sys.executable, "-c", _INTERRUPTED_AS_IT_PRINTS, stream, str(LINES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    printed = Counter(re.findall(r"<\d+>", done.stdout if stream == "stdout" else done.stderr))
    assert done.returncode == 0
    assert len(printed) > LINES / 2
    assert [line for line, count in printed.items() if count > 1] == []
