"""Send random scripts through Kafka and through keptlog, and show where they differ: ``make fuzz N=10000 SEED=...``.

Of keptlog it is the pure rules, some dozen scripts a second. With ``REAL=100`` the first hundred also go through the
real table and the real kernels, a few a second.

A difference is shown with the smallest script that has it, ready to be pasted into ``test_cases.py`` under a name.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from random import SystemRandom

from examples.kafka_jars import VERSION
from tests.kafka.oracle import KafkaOracle, KafkaRefused, Script, State, kafka_oracle
from tests.kafka.producers import SenselessScript
from tests.kafka.real import differing_on_table, script_for_the_table
from tests.kafka.replay import states
from tests.kafka.scripts import random_script
from tests.kafka.shrinking import pasteable, shrunk

Comparison = Callable[[Script, list[State] | KafkaRefused], str | None]
"""Tells the first thing in which keptlog differs from what Kafka answered."""

_EVERY = 500


@dataclass
class Outcome:
    """What a run of scripts came to."""

    scripts: int = 0
    on_table: int = 0
    """Those that went through the real table too."""
    operations: int = 0
    cleans: int = 0
    """Passes that cleaned something."""
    differences: int = 0


def differing(script: Script, answer: list[State] | KafkaRefused) -> str | None:
    """The first thing in which keptlog differs from what Kafka answered; null if nothing."""
    if isinstance(answer, KafkaRefused):
        return f"Kafka refused: {answer}"
    ours = states(script)
    observed = [index for index, operation in enumerate(script) if operation.get("observe")]
    for index, kafka, keptlog in zip(observed, answer, ours, strict=True):
        uncommitted = keptlog.pop("uncommitted")
        # Kafka cleans them away in its own time; no reader sees them before, if he reads what is committed.
        committed = kafka | {"records": [row for row in kafka["records"] if row[0] not in uncommitted]}
        for name in keptlog:
            if committed[name] != keptlog[name]:
                where = f"operation {index} ({script[index]['op']}), {name}"
                return f"{where}:\n    Kafka    {committed[name]}\n    keptlog  {keptlog[name]}"
    return None


def told(script: Script, oracle: KafkaOracle, comparison: Comparison = differing) -> str:
    """A difference with the smallest part of the script that has one; what Kafka refuses is not looked at."""

    def difference(smaller: Script) -> str | None:
        try:
            return comparison(smaller, oracle.states(smaller))
        except (KafkaRefused, SenselessScript):
            return None

    smallest = shrunk(script, lambda smaller: difference(smaller) is not None)
    return f"\n{difference(smallest) or 'Kafka refused a part of it'}\n{pasteable(smallest)}"


def compared(
    scripts: Iterable[Script], oracle: KafkaOracle, outcome: Outcome, on_table: int = 0
) -> Iterator[tuple[Script, Comparison]]:
    """Put scripts through both, the first ``on_table`` through the table too; yields each that differs, and where."""
    for script, answer in oracle.answers(scripts):
        comparisons: list[Comparison] = [differing]
        if outcome.scripts < on_table:
            comparisons.append(differing_on_table)
            outcome.on_table += 1
        outcome.scripts += 1
        outcome.operations += len(script)
        outcome.cleans += sum(state.get("cleaned", False) for state in answer) if isinstance(answer, list) else 0
        different = next((each for each in comparisons if each(script, answer)), None)
        if different:
            outcome.differences += 1
            yield script, different


def _random_scripts(seed: int, count: int, on_table: int) -> Iterator[Script]:
    began = time.monotonic()
    for number in range(count):
        if number and number % _EVERY == 0:
            _tell(f"{number} scripts, {number / (time.monotonic() - began):.0f} a second")
        yield (script_for_the_table if number < on_table else random_script)(f"{seed}-{number}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description=f"Compare keptlog with Apache Kafka {VERSION}.")
    parser.add_argument("--scripts", type=int, default=1_000, metavar="N")
    parser.add_argument("--real", type=int, default=0, metavar="N", help="so many of them on the real table too")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6), metavar="SEED")
    parser.add_argument("--differences", type=int, default=5, metavar="D", help="stop after so many")
    wanted = parser.parse_args()
    outcome, began = Outcome(), time.monotonic()
    found: list[tuple[Script, Comparison]] = []
    with kafka_oracle() as oracle:
        scripts = _random_scripts(wanted.seed, wanted.scripts, wanted.real)
        for each in compared(scripts, oracle, outcome, wanted.real):
            found.append(each)
            _tell(f"script {outcome.scripts - 1} differs; it is shown at the end")
            if len(found) == wanted.differences:
                break
        for script, comparison in found:
            _tell(told(script, oracle, comparison))
    _tell(
        f"seed {wanted.seed}: {outcome.scripts} scripts, {outcome.on_table} of them on the real table, "
        f"{outcome.operations} operations, {outcome.cleans} cleans, "
        f"{outcome.scripts / (time.monotonic() - began):.0f} scripts a second: {outcome.differences} differences"
    )
    return 1 if found else 0


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
