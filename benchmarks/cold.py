"""Where the seconds of a small clean go, cold and warm, and what commands cost that need no Spark.

    python -m benchmarks.cold                               # this checkout
    python -m benchmarks.cold --beside /path/to/another     # in turns with another, as one of an older commit
    python -m benchmarks.cold steps read --rounds 3         # some of the parts

| part    | what is measured |
|---------|------------------|
| clean   | `keptlog clean` of a topic of 1,000 records, as a process that starts its own Spark |
| archive | the same, and by a run of Dagster, after `keptlog spark-archive`, which no other part has |
| dagster | the same by a run of Dagster, as a process that loads the code location and starts its own Spark |
| kept    | the same in a home of which `topics_sensor` keeps the state file, as where Dagster's daemon runs |
| warm    | the same through `keptlog spark-server` and its resident, and commands that start no Spark by the resident |
| steps   | the same clean in one process, step by step |
| others  | commands that start no Spark, after an append; and what is refused |

CPU is that of all processes that a command has started, of its Java and workers too, also of those that outlive it: this
process takes them in. Numbers are medians. The last line is one JSON object. Linux only.
"""  # noqa: E501  # a table

from __future__ import annotations

import argparse
import ctypes
import fcntl
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.cold_text import BESIDE, HERE, cold_as_text
from benchmarks.machine import described
from benchmarks.report import FULL_ROUNDS, keep
from examples.ports import free_port
from keptlog.resident.place import socket_beside

_BECOME_SUBREAPER = 36
_RECORDS, _KEYS = 1_000, 500
_THREE_DAYS_MS = 3 * 86_400_000
_TOPIC = ("--config", "cleanup.policy=compact", "--config", "max.compaction.lag.ms=86400000", "--config")
OTHERS = (
    *("status", "plan", "topic list", "topic describe users", "explain users-0", "history users", "files users"),
    *("receipt list", "reader list", "erasure list", "read users", "verify users"),
)
REFUSED = ("append nosuch", "topic create users", "topic alter users --config no=1", "clean nosuch")
HANDED = ("status", "explain users-0", "history users", "read users", "verify users")
_STEPS = """
import time
from inspect import signature
from benchmarks.processes import usage_of_tree
begin = time.perf_counter(), usage_of_tree().cpu_seconds
def mark(name, last=[begin]):
    now = time.perf_counter(), usage_of_tree().cpu_seconds
    print(name, now[0] - last[0][0], now[1] - last[0][1], sep="\\t", flush=True)
    last[0] = now
from keptlog import home as homes
home = homes.open_home()
mark("Python: imports, opening the home")
cleaner = home.cleaner(lambda: bring())
planned = cleaner.begin(["users"], "steps", now_ms=homes.wall_clock_ms(), requested=True)
mark("plan")
import keptlog.spark.session as sessions
# Checkouts of before ADR 63 have a session alone, and those of before ADR 78 are told that nobody makes a frame.
bring = getattr(sessions, "start_spark", sessions.start_session)
bring(**{name: True for name in signature(bring).parameters if name == "tasks_alone"})
mark("Java, until there is a Spark")
staged = cleaner.stage(planned)
mark("the tasks: starting workers, the rewrite itself")
assert cleaner.commit(staged).committed
mark("commit")
"""

_TICK = """
import time
from keptlog.dagster.orchestration.seen import shown
from keptlog.dagster.orchestration.state_file import StateFile
from keptlog.dagster.resources.log_store import LogStoreResource
log_store, now_ms = LogStoreResource(), time.time_ns() // 1_000_000
assert StateFile.of(log_store).keep(shown(log_store.observer.look(now_ms)), now_ms) is None
"""
"""What ``topics_sensor`` leaves of its look."""


@dataclass(frozen=True)
class Checkout:
    """A keptlog that is measured."""

    name: str
    folder: Path


@dataclass
class Rows:
    """Wall and CPU seconds of what was measured, by checkout and name."""

    seconds: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=dict)

    def add(self, checkout: str, name: str, wall: float, cpu: float) -> None:
        self.seconds.setdefault((checkout, name), []).append((wall, cpu))

    def medians(self) -> dict[str, dict[str, dict[str, float]]]:
        """By name, then by checkout."""
        found: dict[str, dict[str, dict[str, float]]] = {}
        for (checkout, name), rounds in self.seconds.items():
            walls, cpus = zip(*rounds, strict=True)
            numbers = {"wall_s": round(statistics.median(walls), 2), "cpu_s": round(statistics.median(cpus), 2)}
            found.setdefault(name, {})[checkout] = numbers
        return found


def run(
    checkout: Checkout, home: Path, words: Sequence[str], more: Mapping[str, str] | None = None, exits: int = 0
) -> tuple[float, float]:
    """A command of a checkout as a process: wall seconds until it answers, CPU seconds of all that it has started."""
    return _timed([sys.executable, "-m", "keptlog", *words], checkout, home, more, exits)[:2]


def until_read(checkout: Checkout, home: Path, words: Sequence[str], file: Path) -> tuple[float, float]:
    """Wall and CPU seconds of a command until it reads the first of what is piped into it."""
    command = [sys.executable, "-m", "keptlog", *words]
    reading, writing = os.pipe()
    page = fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 1)
    content, begin = memoryview(file.read_bytes()), time.perf_counter()
    process = subprocess.Popen(command, env=_environment(checkout, home), stdin=reading, stdout=subprocess.DEVNULL)
    os.close(reading)
    with os.fdopen(writing, "wb", buffering=0) as pipe:
        pipe.write(content[:page])
        # The pipe is full: one byte more fits in when some of it has been read.
        pipe.write(content[page : page + 1])
        wall, ticks = time.perf_counter() - begin, sum(map(int, _stat(Path(f"/proc/{process.pid}"))[11:13]))
        for at in range(page + 1, len(content), page):
            pipe.write(content[at : at + page])
    if process.wait():
        raise SystemExit(f"{' '.join(command[:4])} … failed in {checkout.folder}")
    return wall, ticks / os.sysconf("SC_CLK_TCK")


def _timed(
    command: Sequence[str], checkout: Checkout, home: Path, more: Mapping[str, str] | None = None, exits: int = 0
) -> tuple[float, float, str]:
    environment = {**_environment(checkout, home), **(more or {})}
    cpu, begin = _ended_cpu_seconds() + _handed_cpu_seconds(), time.perf_counter()
    done = subprocess.run(command, env=environment, cwd=home.parent, check=False, capture_output=True, text=True)
    wall = time.perf_counter() - begin
    if done.returncode != exits:
        raise SystemExit(f"{' '.join(command[:4])} … failed in {checkout.folder}: {done.stderr}")
    return wall, _ended_cpu_seconds() + _handed_cpu_seconds() - cpu, done.stdout


def _environment(checkout: Checkout, home: Path) -> dict[str, str]:
    """Of a command, and of the server that it is handed over to: a resident does only what comes from one alike."""
    # An installed keptlog is compiled, whatever this environment says of compiling.
    left_out = ("KEPTLOG_", "PYTHONDONTWRITEBYTECODE")
    own = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    # An archive of the one who measures would be taken, too.
    where = {"PYTHONPATH": str(checkout.folder), "KEPTLOG_HOME": str(home), "XDG_CACHE_HOME": str(home.parent / "none")}
    return {**own, **where}


def _ended_cpu_seconds() -> float:
    """Of all children that have ended; those that a child has left are waited for."""
    while True:
        try:
            os.waitpid(-1, os.WNOHANG if _servers else 0)
        except ChildProcessError:
            break
        if _servers:
            break
    times = os.times()
    return times.children_user + times.children_system


def _handed_cpu_seconds() -> float:
    """Of what residents have carried out; the last one may not have been taken in by them yet."""
    if not _servers:
        return 0.0
    time.sleep(_REAPED_SECONDS)
    ticks = 0
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                parent = int(_stat(folder)[1])
                if parent in _servers and b"keptlog.cli.resident" in (folder / "cmdline").read_bytes():
                    ticks += sum(map(int, _stat(folder)[13:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _stat(process: Path) -> list[str]:
    return (process / "stat").read_text().rpartition(")")[2].split()


_servers: list[int] = []
_REAPED_SECONDS = 0.2


def make_home(checkout: Checkout, home: Path, file: Path) -> None:
    """A home with one topic that is due."""
    shutil.rmtree(home, ignore_errors=True)
    run(checkout, home, ["topic", "create", "users", *_TOPIC, "segment.ms=3600000"])
    run(checkout, home, ["append", "users", "--file", str(file)])


@contextmanager
def server(checkout: Checkout, home: Path) -> Iterator[dict[str, str]]:
    """A warm Spark of a checkout; gives the variable that leads to it."""
    port = free_port()
    address = home.parent / "address"
    environment = _environment(checkout, home)
    command = [sys.executable, "-m", "keptlog", "spark-server", "--port", str(port), "--address-file", str(address)]
    # Not from a checkout's folder, which Python would look into first.
    with subprocess.Popen(command, env=environment, cwd=home.parent, stdout=subprocess.DEVNULL) as process:
        _servers.append(process.pid)
        try:
            has_resident = (checkout.folder / "keptlog" / "resident").is_dir()
            while not address.exists() or (has_resident and not Path(socket_beside(str(address))).is_socket()):
                time.sleep(0.2)
                if process.poll() is not None:
                    raise SystemExit("the server did not start")
            yield {"KEPTLOG_SPARK_MASTER": f"file:{address}"}
        finally:
            process.terminate()  # a shell's job in the background ignores Ctrl-C, and so does what it starts
            process.wait()
            _servers.remove(process.pid)
            address.unlink(missing_ok=True)


def measured(parts: Sequence[str], checkouts: Sequence[Checkout], rounds: int) -> dict[str, Any]:
    """The medians of these parts."""
    rows = Rows()
    with tempfile.TemporaryDirectory(prefix="keptlog-cold-") as name:
        folder = Path(name)
        file, home = folder / "users.jsonl", folder / "home"
        first_ms = time.time_ns() // 1_000_000 - _THREE_DAYS_MS
        lines = (_line(number, first_ms + number) for number in range(_RECORDS))
        file.write_text("".join(lines))
        for number in range(rounds):
            for checkout in checkouts if number % 2 else reversed(checkouts):
                for part in parts:
                    _PARTS[part](checkout, home, file, rows)
                    print(f"round {number + 1}, {checkout.name}: {part} done", file=sys.stderr, flush=True)
    return {"case": "cold", "rounds": rounds, "on": described(), "parts": rows.medians()}


def _clean(checkout: Checkout, home: Path, file: Path, rows: Rows) -> None:
    make_home(checkout, home, file)
    rows.add(checkout.name, "clean, cold", *run(checkout, home, ["clean", "users"]))


def _archive(checkout: Checkout, home: Path, file: Path, rows: Rows) -> None:
    if not (checkout.folder / "keptlog" / "spark" / "archiving.py").exists():
        return
    there = {"XDG_CACHE_HOME": str(home.parent / f"archived-{checkout.name}")}
    if not Path(there["XDG_CACHE_HOME"]).exists():
        rows.add(checkout.name, "making the archive, once", *run(checkout, home, ["spark-archive"], there))
    make_home(checkout, home, file)
    rows.add(checkout.name, "clean, cold, with an archive", *run(checkout, home, ["clean", "users"], there))
    taken = _by_dagster(checkout, home, file, more=there)
    rows.add(checkout.name, "clean by a run of Dagster, cold, with an archive", *taken)


def _dagster(checkout: Checkout, home: Path, file: Path, rows: Rows) -> None:
    rows.add(checkout.name, "clean by a run of Dagster, cold", *_by_dagster(checkout, home, file))


def _kept(checkout: Checkout, home: Path, file: Path, rows: Rows) -> None:
    rows.add(checkout.name, "the same in a home that a sensor has seen", *_by_dagster(checkout, home, file, _TICK))


def _by_dagster(
    checkout: Checkout, home: Path, file: Path, before: str = "", more: Mapping[str, str] | None = None
) -> tuple[float, float]:
    """A run, after this Python code of the checkout; wall and CPU seconds."""
    make_home(checkout, home, file)
    dagster, config = home.parent / "dagster", home.parent / "run.json"
    dagster.mkdir(exist_ok=True)
    (dagster / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    config.write_text(json.dumps({"ops": {"plan": {"config": {"logs": ["users"], "requested": True}}}}))
    module = ("-m", "keptlog.dagster.orchestration.definitions", "-j", "clean_logs")
    command = [sys.executable, "-W", "ignore", "-m", "dagster", "job", "execute", *module, "-c", str(config)]
    there = {"DAGSTER_HOME": str(dagster), **(more or {})}
    # The first run of a new DAGSTER_HOME makes its databases.
    if not (dagster / "history").exists():
        _timed(command, checkout, home, there)
        make_home(checkout, home, file)
    _timed([sys.executable, "-W", "ignore", "-c", before], checkout, home)
    return _timed(command, checkout, home, there)[:2]


def _warm(checkout: Checkout, home: Path, file: Path, rows: Rows) -> None:
    make_home(checkout, home, file)
    with server(checkout, home) as there:
        run(checkout, home, ["clean", "users"], there)
        run(checkout, home, ["append", "users", "--file", str(file)])
        rows.add(checkout.name, "clean, warm", *run(checkout, home, ["clean", "users"], there))
        for words in HANDED:
            rows.add(checkout.name, f"{words}, beside a warm Spark", *run(checkout, home, words.split(), there))


def _steps(checkout: Checkout, home: Path, file: Path, rows: Rows) -> None:
    make_home(checkout, home, file)
    for line in _timed([sys.executable, "-c", _STEPS], checkout, home)[2].splitlines():
        name, wall, cpu = line.split("\t")
        rows.add(checkout.name, f"step: {name}", float(wall), float(cpu))


def _others(checkout: Checkout, home: Path, file: Path, rows: Rows) -> None:
    make_home(checkout, home, file)
    # Else verify would end with 1: records wait for longer than they may.
    run(checkout, home, ["topic", "alter", "users", "--delete-config", "max.compaction.lag.ms"])
    run(checkout, home, ["status"])
    for words in OTHERS:
        rows.add(checkout.name, words, *run(checkout, home, words.split()))
    for words in REFUSED:
        rows.add(checkout.name, f"{words}, refused", *run(checkout, home, words.split(), exits=2))
    rows.add(
        checkout.name, "append users, until it reads records", *until_read(checkout, home, ["append", "users"], file)
    )
    rows.add(checkout.name, "append users", *run(checkout, home, ["append", "users", "--file", str(file)]))


_PARTS = {
    "clean": _clean,
    "archive": _archive,
    "dagster": _dagster,
    "kept": _kept,
    "warm": _warm,
    "steps": _steps,
    "others": _others,
}


def _line(number: int, timestamp_ms: int) -> str:
    record = {"key": f"user-{number % _KEYS}", "value": f"value-{number}", "timestamp": timestamp_ms}
    return json.dumps(record) + "\n"


def _commit(folder: Path) -> str:
    command = ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *_PARTS], default=[], help="all if none is named")
    parser.add_argument("--beside", type=Path, help="another checkout, measured in turns with this one")
    parser.add_argument("--rounds", type=int, default=FULL_ROUNDS)
    given = parser.parse_args()
    ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1)
    checkouts = [Checkout(HERE, Path(__file__).parents[1])]
    if given.beside:
        checkouts.append(Checkout(BESIDE, given.beside.absolute()))
    result = measured(given.parts or list(_PARTS), checkouts, given.rounds)
    if given.beside:
        result["beside"] = _commit(given.beside)
    print(cold_as_text(result))
    if not given.parts and given.rounds >= FULL_ROUNDS:
        keep(result)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
