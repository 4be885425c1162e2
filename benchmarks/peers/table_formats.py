"""Apache Hudi's and Apache Paimon's own compaction, as they are published for Spark: what a user may pick instead.

    build/spark-3.5.8     an environment of its own for the Spark that both are published for, made once
    build/hudi-1.2.0      its jar, fetched by Maven once
    build/paimon-0.9.0    the same
    log --fill--> a table, once  --copied--> compacted, every round

Both hold the state of a log: the rows of its keys. A clean section is a compacted table already, and each dirty
segment (of many topic-partitions: the n-th of each) is a write that lies beside it. Then the table is compacted, which
reads everything and leaves the latest row of each key. It is as ``table_format_driver.py`` says, which runs there.

They leave out the order of offsets, the sizes of segments, and the horizons of tombstones; that is made up for when
they are compared (``table_state``). They commit, which others here do not, and which can't be taken off.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from benchmarks.peers import Left, PeerMissing, Setup, Work
from examples.installed import BUILD, MavenJars, NotInstalled

_HERE = Path(__file__).parent
_SPARK = "3.5.8"
_VERSIONS = {"hudi": ("Apache Hudi", "1.2.0", "81 MB"), "paimon": ("Apache Paimon", "0.9.0", "42 MB")}
FORMATS = tuple(_VERSIONS)
_DRIVER = _HERE / "table_format_driver.py"


def open_peer(setup: Setup) -> TableFormat:
    """Fetch what is missing, and start the driver. ``settings`` has the format's name."""
    name = dict(setup.settings)["format"]
    try:
        jar = _jar(name)
        python = _python()
    except NotInstalled as missing:
        raise PeerMissing(str(missing)) from missing
    # Spark's progress and Hudi's warnings have no reader here; a failure ends the process.
    process = subprocess.Popen(
        [str(python), str(_DRIVER), name, str(jar), str(setup.cores)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=BUILD,
    )
    peer = TableFormat(name, process)
    peer.answer()
    return peer


def is_fetched(name: str) -> bool:
    """Whether nothing would have to be fetched for this format."""
    return _jars(name).is_there() and _complete().exists()


@dataclass(frozen=True)
class TableFormat:
    """A Spark that fills and compacts tables as it is told."""

    name: str
    process: subprocess.Popen[str]
    _filled: dict[str, Path] = field(default_factory=dict)

    def prepare(self, work: Work) -> None:
        log = work.step.segments[0].path
        if log not in self._filled:
            self._filled[log] = self._fill(work)
        shutil.copytree(self._filled[log], _table(work))
        self.ask("open", _table(work))

    def run(self, work: Work) -> Left:
        paths = self.ask("compact", _table(work))
        return Left(tuple(paths), is_state=True)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()

    def ask(self, what: str, table: Path, **more: object) -> Any:
        """One request to the driver, and its answer."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"do": what, "table": str(table), **more}) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> Any:
        """What the driver says next."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the driver of {self.name} ended; run {_DRIVER} by hand to see why")
        return json.loads(line)

    def _fill(self, work: Work) -> Path:
        table = Path(work.step.segments[0].path).parents[1] / f"table-{self.name}"
        steps = work.log.steps
        dirty = [[segment.path for segment in step.dirty] for step in steps]
        clean = set(work.log.paths) - {path for paths in dirty for path in paths}
        writes = [[path for path in paths if path] for paths in zip_longest(*dirty)]
        self.ask("fill", table, clean=sorted(clean), dirty=writes, partitions=len(steps))
        return table


def _table(work: Work) -> Path:
    return work.output / "table"


def _jars(name: str) -> MavenJars:
    what, version, size = _VERSIONS[name]
    return MavenJars(f"{what} {version}", size, _HERE / f"{name}-jar.xml", BUILD / f"{name}-{version}")


def _jar(name: str) -> Path:
    jars = _jars(name)
    jars.classpath(_tell)
    (jar,) = (jars.folder / "jars").glob("*.jar")
    return jar


def _folder() -> Path:
    return BUILD / f"spark-{_SPARK}"


def _complete() -> Path:
    return _folder() / ".complete"


def _python() -> Path:
    """The Python that has this Spark, and nothing else."""
    python = _folder() / "bin" / "python"
    if not _complete().exists():
        _tell(f"installing PySpark {_SPARK} (320 MB, once)")
        shutil.rmtree(_folder(), ignore_errors=True)
        venv.create(_folder(), with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", f"pyspark=={_SPARK}"]
        outcome = subprocess.run(command, capture_output=True, text=True, check=False)
        if outcome.returncode != 0:
            raise NotInstalled(f"pip can't get PySpark {_SPARK}: {outcome.stderr.strip().splitlines()[-1]}")
        _complete().touch()
    return python


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
