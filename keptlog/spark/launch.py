"""How Spark's Java gets its settings: by a file that only this user can read, and that is gone once Java has read it.

PySpark and ``spark-submit --conf`` put each setting on a command line, where everybody on the machine reads it with
``ps``: passwords of stores too. ``spark-submit --properties-file`` takes the same settings from a file.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark import SparkContext

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""What PySpark gives to ``spark-submit`` beside its own; by default that it is Python who asks."""
_ESCAPED = str.maketrans({"\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t", "=": r"\=", ":": r"\:", " ": r"\ "})


@contextmanager
def settings_file(settings: Mapping[str, str]) -> Iterator[list[str]]:
    """Arguments of ``spark-submit`` that lead to a file with these settings; it is there as long as the block.

    They go over those of ``spark-defaults.conf``, as those of a command line do.
    """
    with tempfile.NamedTemporaryFile("w", prefix="keptlog-spark-", suffix=".conf", encoding="utf-8") as file:
        file.writelines(f"{name.translate(_ESCAPED)}={value.translate(_ESCAPED)}\n" for name, value in settings.items())
        file.flush()
        yield ["--properties-file", file.name, "--load-spark-defaults"]


def start_java(settings: Mapping[str, str]) -> None:
    """Start the Java of this process, unless it runs already.

    Raises:
        PySparkException: it can't be started.
    """
    given = os.environ.get(_ARGUMENTS)
    with settings_file(settings) as arguments:
        os.environ[_ARGUMENTS] = f"{shlex.join(arguments)} {given or 'pyspark-shell'}"
        try:
            # Whatever it is asked, it is started for the answer; a session takes the one that runs.
            SparkContext.getSystemProperty("java.version")
        finally:
            if given is None:
                del os.environ[_ARGUMENTS]
            else:
                os.environ[_ARGUMENTS] = given
