"""NumPy's library for matrices starts no threads in a command, which has no matrices, unless somebody says how many."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_RUN = """
import os
import sys

end = os._exit

def tell_and_end(code):
    print(code, "numpy" in sys.modules, len(os.listdir("/proc/self/task")), file=sys.stderr, flush=True)
    end(code)

os._exit = tell_and_end
sys.argv = ["keptlog", *sys.argv[1:]]
from keptlog.__main__ import run
run()
"""


def _threads(home: Path, *words: str, variables: dict[str, str] | None = None) -> int:
    """How many threads a command that has imported NumPy has at its end."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENBLAS_", "OMP_"))}
    environment = {**kept, "KEPTLOG_HOME": str(home), **(variables or {})}
    command = [sys.executable, "-c", _RUN, *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    code, has_numpy, threads = done.stderr.split()[-3:]
    assert (code, has_numpy) == ("0", "True"), done.stderr
    return int(threads)


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_a_command_has_no_threads_for_matrices_unless_it_is_told_to(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "one.jsonl"
    file.write_text('{"key": "a", "value": "1"}\n')
    _threads(home, "topic", "create", "users")
    _threads(home, "append", "users", "--file", str(file))
    threads = _threads(home, "read", "users")
    cores = len(os.sched_getaffinity(0))
    told = _threads(home, "read", "users", variables={"OPENBLAS_NUM_THREADS": str(cores)})
    assert told == threads + cores - 1
