"""What the first call to Java imports is imported while Java starts, and not once it could be asked."""

from __future__ import annotations

import subprocess
import sys

_CODE = """
import sys
from keptlog.spark.java import StartingJava
from keptlog.spark.session import start_spark
known = []
really_wait = StartingJava.wait
def wait(starting):
    java = really_wait(starting)
    known.extend(sys.modules)
    return java
StartingJava.wait = wait
start_spark("local[1]").stop()
large = {name for name in sys.modules if name.partition(".")[0] in {"pandas", "numpy", "pyarrow"}}
print(bool(known), sorted(large - set(known)))
"""


def test_no_large_library_is_imported_between_javas_answer_and_the_first_task() -> None:
    done = subprocess.run([sys.executable, "-c", _CODE], capture_output=True, text=True, check=True)
    assert done.stdout == "True []\n"
