"""Where the property is damaged that names a topic's erasures, no file is: doctor does not say to put one back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Run
from tests.table.foreign import set_properties


def test_doctor_blames_the_property_and_no_file(keptlog: Run, lines: Callable[..., str], home: Path) -> None:
    keptlog("topic", "create", "users", "--config", "cleanup.policy=compact")
    keptlog("append", "users", "--file", lines({"key": "a", "value": "1"}))
    keptlog("erase", "users", "--key", "a", "--yes")
    set_properties(home, {"log.erasures": "{"}, "users")
    erasures = next(each for each in keptlog("doctor", "--json").json["checks"] if each["name"] == "erasure records")
    problem = next(each for each in erasures["problems"] if each["subject"] == "users")
    assert "property log.erasures='{' is no name of a file" in problem["what"]
    assert problem["cause"] == "another program has changed a property of its table"
    assert problem["todo"] == "do what it says"


def test_an_empty_property_is_not_no_erasure(keptlog: Run, lines: Callable[..., str], home: Path) -> None:
    keptlog("topic", "create", "users", "--config", "cleanup.policy=compact")
    keptlog("append", "users", "--file", lines({"key": "a", "value": "1"}))
    keptlog("erase", "users", "--key", "a", "--yes")
    set_properties(home, {"log.erasures": ""}, "users")
    listed = keptlog("erasure", "list")
    assert (listed.code, "property log.erasures='' is no name of a file" in listed.err) == (1, True)
    erasures = next(each for each in keptlog("doctor", "--json").json["checks"] if each["name"] == "erasure records")
    assert "users" in {each["subject"] for each in erasures["problems"]}
