"""Scripts come again from their seed, and shrink to what matters."""

from __future__ import annotations

from tests.kafka.oracle import Script
from tests.kafka.scripts import random_script
from tests.kafka.shrinking import shrunk


def values(script: Script) -> list[str | None]:
    return [record["value"] for operation in script if operation["op"] == "append" for record in operation["records"]]


def test_a_seed_gives_the_same_script_again() -> None:
    assert random_script("1-1") == random_script("1-1")
    assert random_script("1-1") != random_script("1-2")


def test_a_script_shrinks_to_what_the_difference_needs() -> None:
    def differs(script: Script) -> bool:
        has_tombstone = None in values(script)
        return has_tombstone and any(operation["op"] == "clean" for operation in script[2:])

    script = next(each for number in range(100) if differs(each := random_script(f"1-{number}")))
    create, append, clean = shrunk(script, differs)
    assert create["config"] == {}
    assert [record["value"] for record in append["records"]] == [None]
    assert clean["op"] == "clean"


def test_a_script_that_can_lose_nothing_stays() -> None:
    script = random_script("1-1")
    assert shrunk(script, lambda smaller: smaller == script) == script
