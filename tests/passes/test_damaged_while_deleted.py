"""A topic that is being deleted, and whose metadata file is damaged, is told by name and stops no other topic."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from keptlog.errors import LogCorrupt
from keptlog.table.namespaces import DELETING, NAMESPACE
from keptlog.table.store import LogStore
from tests.passes.applying import applied, applier, file
from tests.passes.conftest import NOW_MS

DAMAGES = {"empty": b"", "another document": b'{"a": 1}', "no text": b"\xff\xfe\x00", "half": None, "gone": None}


@pytest.fixture(params=DAMAGES)
def damaged(request: pytest.FixtureRequest, store: LogStore) -> str:
    """What is said of the topic c, whose deletion was killed behind its first step."""
    catalog = store.committer.catalog
    catalog.create_namespace((DELETING,))
    path = Path(catalog.rename_table((NAMESPACE, "c"), (DELETING, "c")).metadata_location.removeprefix("file://"))
    content = DAMAGES[request.param]
    path.write_bytes(path.read_bytes()[:500] if content is None else content)
    if request.param == "gone":
        path.unlink()
    said = "is gone" if request.param == "gone" else ".*is damaged"
    return rf"topic c: .*{path.name} {said}"


def test_to_delete_it_says_which_file_it_is_and_what_to_do(store: LogStore, damaged: str) -> None:
    for delete in (partial(store.delete_topic, "c", NOW_MS), store.deletion("c", NOW_MS).finish):
        with pytest.raises(LogCorrupt, match=damaged) as told:
            delete()
        assert f"drop_table({(DELETING, 'c')!r})" in str(told.value)
    assert store.being_deleted() == ["c"]
    store.committer.catalog.drop_table((DELETING, "c"))
    store.create_topic("c", 1, {})


def test_an_apply_that_is_to_delete_it_does_the_rest(store: LogStore, damaged: str) -> None:
    plan = applier(store).plan(file("  new: {}\n"), ("b", "c"))
    assert (plan.deletions, list(plan.failed)) == (("b",), ["c"])
    assert isinstance(plan.failed["c"], LogCorrupt)
    done = applied(store, "  new: {}\n", delete=("b", "c"))
    assert (done.done, list(done.deletions), list(done.failed)) == (("new",), ["b"], ["c"])
    assert re.match(damaged, str(done.failed["c"]))
