"""``pytest tests/conformance --cases FILE`` runs the cases of a file; how many differ on purpose stands at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conformance.cases import Fields, load

NONE_GIVEN = [
    pytest.param({}, marks=pytest.mark.skip("no cases of Kafka's were given: pytest tests/conformance --cases FILE"))
]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cases", action="append", default=None, metavar="FILE", help="a file of conformance cases")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    files = [Path(name) for name in metafunc.config.getoption("cases", None) or []]
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", _cases(files) or NONE_GIVEN, ids=_name)
    if "case_with_records" in metafunc.fixturenames:
        with_records = [case for case in _cases(files) if case.get("kind") in {"clean", "strategy"}]
        metafunc.parametrize("case_with_records", with_records or NONE_GIVEN, ids=_name)


def _cases(files: Sequence[Path]) -> list[Fields]:
    return [case for path in files for case in load(path)]


def _name(case: Fields) -> str:
    return f"{case.get('kind')}-{case.get('name')}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    tally: Counter[str] = Counter()
    differences: list[str] = []
    for outcome in ("passed", "failed", "skipped"):
        for report in terminalreporter.getreports(outcome):
            properties = dict(report.user_properties) if report.when == "call" else {}
            if "case" in properties:
                differs = properties.get("differs", "")
                tally["differ on purpose" if differs and outcome == "passed" else outcome] += 1
                differences += [f"{properties['case']}: {each}" for each in differs.split("\n") if each]
    if not tally:
        return
    terminalreporter.section("conformance with Kafka")
    same = tally.pop("passed", 0)
    words = tally.pop("skipped", 0)
    terminalreporter.line(
        f"{same} cases the same, {tally.pop('differ on purpose', 0)} differ on purpose, "
        f"{tally.pop('failed', 0)} failed, {words} in words (descriptive, not run)"
    )
    for line in differences:
        terminalreporter.line(f"  {line}")
