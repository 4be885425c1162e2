"""New histories, round by round, for as long as one likes: ``make soak MINUTES=60``; the first failure ends it.

    a round    the same number for all dice of:
               pytest PROPERTIES              random logs and topics against the specification; kill -9 at any moment
               python -m tests.kafka.fuzz     random scripts through Apache Kafka's own classes; needs Maven

The number of a round is its seed. Whatever fails is shown with the line that does it again; docs/testing.md tells how a
failure that was found becomes a test with a name.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from random import SystemRandom

from examples.installed import NotInstalled
from keptlog.log.words.counted import counted
from tests.kafka.jars import classpath

PROPERTIES = (
    "tests/model",
    "tests/engine",
    "tests/kernels",
    "tests/log",
    "tests/sources/kafka_log/test_random_logs.py",
    "tests/crash/test_kill.py",
    "tests/crash/test_kill_import.py",
    "tests/crash/test_many_kills.py",
    "tests/erasure/test_many_kills.py",
)
SCRIPTS, ON_TABLE = 2000, 50
_INTERRUPTED = 130


def parts(seed: int, *, with_kafka: bool) -> list[list[str]]:
    """The commands of one round, as they would be typed."""
    chosen = ["-n", "2", "--hypothesis-profile", "soak", "--hypothesis-seed", str(seed), "--exitfirst", "--quiet"]
    commands = [["pytest", *chosen, *PROPERTIES]]
    if with_kafka:
        fuzz = ["tests.kafka.fuzz", "--scripts", str(SCRIPTS), "--real", str(ON_TABLE), "--seed", str(seed)]
        commands.append(fuzz)
    return commands


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make soak", description="Try new histories until the time is over.")
    parser.add_argument("--minutes", type=float, default=10, metavar="MINUTES", help="no round begins after that")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6), metavar="SEED", help="the first")
    wanted = parser.parse_args(arguments)
    with_kafka = _has_kafka()
    end, rounds = time.monotonic() + 60 * wanted.minutes, 0
    try:
        while not rounds or time.monotonic() < end:
            seed = wanted.seed + rounds
            for command in parts(seed, with_kafka=with_kafka):
                _tell(f"seed {seed}: {command[0]}")
                if not _succeeds(command):
                    _tell(f"seed {seed} fails; again: .venv/bin/python -m {shlex.join(command)}")
                    return 1
            rounds += 1
    except KeyboardInterrupt:
        _tell(f"stopped after {counted(rounds, 'round')}, nothing found")
        return _INTERRUPTED
    _tell(f"{counted(rounds, 'round')} from seed {wanted.seed} on, nothing found")
    return 0


def _has_kafka() -> bool:
    try:
        classpath()
    except NotInstalled as missing:
        _tell(f"without Apache Kafka: {missing}")
        return False
    return True


def _succeeds(command: Sequence[str]) -> bool:
    """What it prints is shown only if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode != 0:
        _tell(done.stdout)
    return done.returncode == 0


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
