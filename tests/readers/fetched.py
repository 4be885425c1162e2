"""Readers that are not installed here, each in an environment of its own below ``build``; they stay there.

pytest tests/readers --fetched
  -> build/pyspark-4.1.4, build/duckdb-1.5.5    Python packages: 560 MB
  -> Maven's local repository                   jars of Iceberg, S3A and databases: 790 MB; Spark looks there first
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.readers.page import PAGE

BUILD = Path(__file__).parents[2] / "build"
_SPARK = re.compile(r"pip install (pyspark==\S+) (\w+)`")
_JARS = re.compile(r'"((?:[\w.-]+:[\w.-]+:[\w.-]+,?)+)"')
_GET = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:get"


def skip_unless_asked(config: pytest.Config, what: str) -> None:
    """Skip where nobody asked for readers that are to be fetched."""
    if not config.getoption("fetched", False):
        pytest.skip(f"{what} is not tried: it has to be fetched; ask for it with make readers")


def python_with(name: str, packages: Iterable[str]) -> Path:
    """The Python of an environment with these packages."""
    environment = BUILD / name
    if not (environment / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True)
        subprocess.run([environment / "bin" / "pip", "install", "--quiet", *packages], check=True)
        (environment / "complete").touch()
    return environment / "bin" / "python"


def fetch_jars(code: str, others: Iterable[str] = ()) -> None:
    """Fetch the jars that code names in ``spark.jars.packages``, where Spark looks first."""
    if shutil.which("mvn") is None:
        pytest.skip("Spark's readers that need jars are not tried: no mvn; apt-get install maven")
    named = [jar for found in _JARS.findall(code) for jar in found.split(",") if jar]
    assert named
    for jar in [*named, *others]:
        # Maven looks for the jars of hadoop-aws's own tests too, unless it is told to take none but this one.
        subprocess.run(["mvn", "--quiet", "--batch-mode", _GET, f"-Dartifact={jar}", "-Dtransitive=false"], check=True)


def spark_of_the_page() -> Path:
    """The Python of an environment with the Spark that the page names for Iceberg's runtime."""
    found = _SPARK.search(PAGE.read_text(encoding="utf-8"))
    assert found
    return python_with(found[1].replace("==", "-"), found.groups())
