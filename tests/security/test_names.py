"""No name that somebody chooses leads out of the folder where it is to be: refused in one line, or harmless."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keptlog.errors import InvalidConfig, KeptlogError
from keptlog.home import Home, new_id, open_home
from keptlog.log.record import NewRecord
from keptlog.log.topic_partition import valid_topic_name
from keptlog.table.metadata.logs import StoredTopic
from keptlog.table.reading.cache import TopicCache

NOW_MS = 1_800_000_000_000
LEADING_OUT = ["", ".", "..", "../..", "a/b", "../outside", "/etc/outside", "a/../../outside"]
LEADING_OUT += ["a\\b", "a\0b", "a\nb", "%2e%2e"]
RECORD = [NewRecord(b"k", b"v", NOW_MS, 0)]

USES: dict[str, Callable[[Home, str], object]] = {
    "a new topic": lambda home, name: home.create_topic(name, 1, {"cleanup.policy": "compact"}),
    "a topic to append to": lambda home, name: home.append(name, RECORD, now_ms=NOW_MS),
    "a topic to describe": lambda home, name: home.describe_topic(name),
    "a topic to delete": lambda home, name: home.delete_topic(name),
    "a run id to append with": lambda home, name: home.append("users", RECORD, now_ms=NOW_MS, run_id=name or "/"),
    "a run id to delete records with": lambda home, name: home.store.delete_records(
        home.store.logs("users")[0].topic_partition, 0, name
    ),
    "a reader": lambda home, name: home.readers.add("users", name, now_ms=NOW_MS),
    "a reader to remove": lambda home, name: home.readers.remove("users", name),
    "a receipt": lambda home, name: home.receipts.show(name or "/"),
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    opened = open_home(tmp_path / "deep" / "er" / "home")
    opened.create_topic("users", 1, {"cleanup.policy": "compact"})
    return opened


def files_outside(home: Home) -> set[str]:
    """All files beside the home, up to the folder of the test."""
    above = home.path.parents[1].parent
    return {str(path) for path in above.rglob("*") if path.is_file() and not path.is_relative_to(home.path)}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", LEADING_OUT)
def test_a_name_that_leads_out_is_refused_in_one_line(home: Home, use: str, name: str) -> None:
    with pytest.raises(KeptlogError) as raised:
        USES[use](home, name)

    assert "\n" not in str(raised.value)
    assert files_outside(home) == set()


def is_topic_name(name: str) -> bool:
    try:
        return valid_topic_name(name) == name
    except InvalidConfig:
        return False


@given(name=st.text(max_size=300) | st.text(alphabet="./\\-_a~%\0 ", max_size=12))
def test_what_is_remembered_of_a_table_lies_in_the_cache_whatever_the_table_is_called(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    above = tmp_path_factory.getbasetemp() / f"cache-{new_id()}"
    home = above / "deep" / "home"
    home.mkdir(parents=True)
    cache, stored = TopicCache(home), StoredTopic(name, "file:///somewhere", {}, {})

    cache.put(stored)
    found = cache.get(name, "file:///somewhere")
    cache.forget(name)

    assert [path for path in above.rglob("*") if path.is_file()] == []
    assert (found is not None) == is_topic_name(name)


@given(name=st.text(alphabet=st.characters(codec="utf-8"), max_size=260) | st.text(alphabet="./\\-_a~%", max_size=12))
def test_what_a_new_topic_is_called_is_the_name_of_its_folder(name: str) -> None:
    with contextlib.suppress(InvalidConfig):
        folder = Path(os.path.normpath(f"/warehouse/{valid_topic_name(name)}"))
        assert folder.parent == Path("/warehouse")
