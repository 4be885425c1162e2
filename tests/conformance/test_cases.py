"""Every case of the files given with ``--cases``, against the product's own code; without any, the project's scenarios.

    config, offset_map, grouping, select, roll, retention, state     the pure rules
    clean, strategy                                                  the pure rules, and the real table with its kernels
    recovery                                                         the real table
    descriptive                                                      words; skipped, and counted

A case that differs from Kafka on purpose passes, says so, and names the decision. What differs is told by a property of
the case, never by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from keptlog.log.config import TopicConfig
from tests.conformance.cases import Difference, Fields
from tests.conformance.kinds import clean, plain, recovery, retention, roll, select, state, strategy
from tests.conformance.logs import CaseLog, RuleLog, TableLog
from tests.in_process import in_process_engine
from tests.logs import RealTwin, open_store
from tests.scenarios.language import play
from tests.scenarios.scenario import Scenario
from tests.scenarios.selection import SelectionScenario

SCENARIOS = Path(__file__).parents[1] / "scenarios"

RULES: dict[str, Callable[[Fields], list[Difference]]] = {
    "config": plain.run_config,
    "offset_map": plain.run_offset_map,
    "grouping": plain.run_grouping,
    "state": state.run,
    "select": select.run,
    "roll": roll.run,
    "retention": retention.run,
}
ON_A_LOG: dict[str, Callable[[Fields, Callable[[dict[str, str]], CaseLog]], list[Difference]]] = {
    "clean": clean.run,
    "strategy": strategy.run,
}


def test_a_case(case: Fields, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    kind, name = case.get("kind"), str(case.get("name"))
    record_property("case", name)
    if kind == "descriptive":
        pytest.skip(f"in words: {case.get('expect')}")
    if kind in RULES:
        differences = RULES[str(kind)](case)
    elif kind in ON_A_LOG:
        differences = ON_A_LOG[str(kind)](case, lambda settings: RuleLog(TopicConfig.of(settings)))
    elif kind == "recovery":
        differences = recovery.run(case, tmp_path)
    else:
        pytest.fail(f"{name}: there is no kind of case {kind!r}")
    record_property("differs", "\n".join(map(str, differences)))


def test_a_case_on_the_real_table(case_with_records: Fields, tmp_path: Path) -> None:
    case = case_with_records
    ON_A_LOG[str(case["kind"])](case, lambda settings: TableLog(tmp_path, settings))


@pytest.mark.parametrize("path", sorted((SCENARIOS / "log").glob("*.txt")), ids=lambda path: path.stem)
def test_a_scenario_on_the_real_table(path: Path, tmp_path: Path) -> None:
    store = open_store(tmp_path)
    play(path, Scenario(RealTwin(store, in_process_engine(store.files))).run, rewrite=False)


@pytest.mark.parametrize("path", sorted((SCENARIOS / "selection").glob("*.txt")), ids=lambda path: path.stem)
def test_a_scenario_of_the_selection(path: Path) -> None:
    play(path, SelectionScenario().run, rewrite=False)
