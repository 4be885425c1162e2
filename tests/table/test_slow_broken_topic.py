"""A catalog that is asked for one topic after the other, and topics that take all the time that a look has."""

from __future__ import annotations

import contextlib
from typing import cast

import pytest
from pyiceberg.catalog import Catalog

from keptlog.errors import StorageUnavailable
from keptlog.table.commits import locations
from keptlog.table.commits.locations import LocationLook
from keptlog.table.metadata.logs import Locations
from keptlog.table.waiting.side_by_side import Patience

LOOK_MS = 3_000


class FakeCatalog:
    """One that is neither SQL nor REST nor Glue, a clock, and topics that do not answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ms = 1
        self.silent: set[str] = set()
        self.silent_ms = LOOK_MS + 1
        self.asked_for: list[str] = []
        self.looking = LocationLook(cast("Catalog", object()))
        monkeypatch.setattr(locations, "topic_names", lambda _catalog: list("abc"))
        monkeypatch.setattr(locations, "metadata_location", lambda _catalog, name: self.asked(name))

    def asked(self, name: str) -> str:
        self.asked_for.append(name)
        self.now_ms += self.silent_ms if name in self.silent else 1
        if name in self.silent:
            raise StorageUnavailable(f"{name} does not answer")
        return f"location of {name}"

    def look(self) -> Locations:
        self.now_ms += 1
        return self.looking.now(Patience(lambda: self.now_ms, self.now_ms + LOOK_MS))


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> FakeCatalog:
    return FakeCatalog(monkeypatch)


def test_a_slow_broken_topic_that_is_asked_alone_costs_no_look_at_the_others(catalog: FakeCatalog) -> None:
    catalog.look()
    catalog.silent = {"a"}
    looks = [catalog.look() for _ in range(6)]
    assert all(look == {"a": "", "b": "location of b", "c": "location of c"} for look in looks)


def test_two_of_them_cost_one_at_most_when_they_are_met_and_are_asked_again(catalog: FakeCatalog) -> None:
    catalog.look()
    catalog.silent = {"a", "b"}
    catalog.look()
    with pytest.raises(StorageUnavailable):
        catalog.look()
    looks = [catalog.look() for _ in range(60)]
    assert all(look["c"] == "location of c" for look in looks)
    assert looks[-1] == {"a": "", "b": "", "c": "location of c"}
    catalog.silent.clear()
    assert catalog.look() == {name: f"location of {name}" for name in "abc"}


def test_two_that_take_half_the_time_each_cost_one_look_however_often_both_have_their_turn(
    catalog: FakeCatalog,
) -> None:
    catalog.look()
    catalog.silent, catalog.silent_ms = {"a", "b"}, 1_600
    with pytest.raises(StorageUnavailable):
        catalog.look()
    for _ in range(12):
        assert catalog.look()["c"] == "location of c"
        catalog.now_ms += 60_000
    catalog.silent = set("abc")
    with contextlib.suppress(StorageUnavailable):  # it may be the turn of the two
        catalog.look()
    for _ in range(3):
        with pytest.raises(StorageUnavailable):
            catalog.look()


def test_they_stay_put_off_when_somebody_with_more_time_has_asked_for_all(catalog: FakeCatalog) -> None:
    catalog.look()
    catalog.silent, catalog.silent_ms = {"a", "b"}, 1_600
    with pytest.raises(StorageUnavailable):
        catalog.look()
    for _ in range(6):
        catalog.now_ms += 30_000
        assert catalog.looking.now() == {"a": "", "b": "", "c": "location of c"}
        catalog.asked_for.clear()
        catalog.look()
        assert catalog.asked_for[0] == "c"


def test_a_catalog_whose_topics_all_do_not_answer_any_more_is_out_of_reach_from_the_second_one_on(
    catalog: FakeCatalog,
) -> None:
    catalog.look()
    catalog.silent = set("abc")
    catalog.look()
    for _ in range(3):
        with pytest.raises(StorageUnavailable):
            catalog.look()


def test_a_catalog_whose_first_topic_does_not_answer_is_out_of_reach(catalog: FakeCatalog) -> None:
    catalog.silent = set("abc")
    with pytest.raises(StorageUnavailable):
        catalog.look()
