"""On what was measured: the machine, the versions of everything involved, the commit."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path

from examples.kafka_jars import VERSION as KAFKA_VERSION

_PACKAGES = ("pyarrow", "pyspark", "duckdb", "polars", "numpy")
_ROOT = Path(__file__).parents[1]
_RESULTS = (":!benchmarks/RESULTS.md", ":!benchmarks/results")
_GIBIBYTE = 2**30


def described() -> dict[str, str]:
    """Short facts by name; asked before anything is measured, the load is that of others."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GIBIBYTE
    model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return {
        "measured": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "machine": f"{os.cpu_count()} x {model.group(1) if model else platform.machine()}, {memory:.0f} GiB",
        "load before": f"{os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
        "java": _java(),
        "kafka": KAFKA_VERSION,
    } | {package: version(package) for package in _PACKAGES}


def as_facts(machine: Mapping[str, str]) -> list[str]:
    """What ``described`` told, for a line of text."""
    return [value if name in {"measured", "machine", "java"} else f"{name} {value}" for name, value in machine.items()]


@cache
def _java() -> str:
    told = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.splitlines()
    return told[0] if told else "no java"


@cache
def commit() -> str:
    """Short hash of the checkout, and whether the library was changed since."""
    git = ["git", "-C", str(_ROOT)]
    head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    changes = subprocess.run(
        [*git, "status", "--porcelain", "--untracked-files=no", "--", "keptlog", "benchmarks", *_RESULTS],
        capture_output=True,
        text=True,
        check=False,
    )
    return (head.stdout.strip() or "unknown") + (" with changes" if changes.stdout.strip() else "")
