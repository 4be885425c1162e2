"""``keptlog doctor`` tells a property of a table that no commit can be made with, until it is taken away; so does
``keptlog repair``, which can't mend it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.table.foreign import set_properties
from tests.table.stores import TOPIC, append_each, create, store_at
from tests.table.test_unusable_properties import LIMIT, UNUSABLE, set_unusable


@pytest.mark.parametrize(("name", "value"), UNUSABLE)
def test_a_property_that_no_commit_can_be_made_with_is_a_problem(
    keptlog: Run, home: Path, name: str, value: str
) -> None:
    append_each(create(home), [("a", "1")])
    set_unusable(home, name, value)
    told = keptlog("doctor", "--json")
    assert told.code == 1
    [found] = [problem for check in told.json["checks"] for problem in check["problems"]]
    assert found["subject"] == TOPIC
    made = "snapshot" if name == LIMIT else "commit"
    assert f"no {made} can be made with its property {name}={value}" in found["what"]
    assert found["cause"] == "another program has changed a property of its table"
    assert (found["todo"], found["command"]) == ("do what it says", None)
    for repaired in (keptlog("repair", TOPIC), keptlog("repair", TOPIC, "--dry-run")):
        assert (repaired.code, found["what"] in repaired.out + repaired.err) == (1, True)
    set_properties(home, {name: None})
    assert keptlog("doctor").code == 0
    append_each(store_at(home), [("b", "1")])
