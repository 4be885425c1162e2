"""A topic that is always written to has new files at each listing: its erasures are verified all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from keptlog.engine.engine import Engine
from keptlog.log.search import FileFindings, SearchedFile
from keptlog.passes.erasures import erase_verify
from keptlog.storage.object_version import OpenUpload
from keptlog.table.io.files import TableFiles
from keptlog.table.removal.search import searched_files
from tests.erasure.test_planted import almost_erased, live_path
from tests.erasure.world import KEY, OTHER, World

Meanwhile = Callable[[int], None]


def beside_each_search(monkeypatch: pytest.MonkeyPatch, before: Meanwhile, after: Meanwhile) -> list[int]:
    """Something is done before and after each search; gives the numbers of those that there were, from 1."""
    look_through, searches = Engine.search, list[int]()

    def search(self: Engine, *args: Any) -> list[FileFindings]:
        searches.append(len(searches) + 1)
        before(searches[-1])
        found = look_through(self, *args)
        after(searches[-1])
        return found

    monkeypatch.setattr(Engine, "search", search)
    return searches


def nothing(_: int) -> None:
    return


def test_a_request_is_verified_though_each_look_meets_a_commit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    almost_erased(world)
    searches = beside_each_search(
        monkeypatch, nothing, lambda number: world.append((KEY, b"came back"), (OTHER, b"%d" % number))
    )
    row = world.verified()
    assert (row.erasure.state, row.blocked) == ("verified", ())
    assert searches == [1, 2]


def test_what_is_given_another_name_before_it_was_opened_is_looked_for_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = almost_erased(world)
    first, second = (live_path(world).with_name(f"0-{name}.parquet") for name in ("first", "second"))

    def before(number: int) -> None:
        if number == 2:
            first.rename(second)

    def after(number: int) -> None:
        if number == 1:
            first.write_bytes(segment)

    beside_each_search(monkeypatch, before, after)
    (text,) = world.verified().blocked
    assert f"{second.name} (segment) has 1 record of 1 key" in text


def test_what_still_grows_is_looked_through_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    segment = almost_erased(world)
    path = live_path(world).with_name("0-grows.parquet")

    def after(number: int) -> None:
        if number == 1:
            path.write_bytes(b"")
        if number == 2:
            path.write_bytes(segment)

    beside_each_search(monkeypatch, nothing, after)
    (text,) = world.verified().blocked
    assert f"{path.name} (segment) has 1 record of 1 key" in text


def test_an_upload_that_is_left_open_is_named_and_not_taken_for_a_writer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    almost_erased(world)
    left = OpenUpload(f"{live_path(world)}-upload", "1", world.now_ms)
    monkeypatch.setattr(TableFiles, "uploads_below", lambda *_: [left])
    beside_each_search(monkeypatch, nothing, lambda number: world.append((OTHER, b"%d" % number)))
    (text,) = world.verified().blocked
    assert left.path in text


def test_an_upload_that_is_completed_once_the_files_were_listed_keeps_the_request_open(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = almost_erased(world)
    path = live_path(world).with_name("0-staged.parquet")
    upload = OpenUpload(str(path), "1", world.now_ms)
    listed = []

    def listing(*args: Any) -> list[SearchedFile]:
        listed.append(searched_files(*args))
        if len(listed) == 2:
            path.write_bytes(segment)
        return listed[-1]

    monkeypatch.setattr(erase_verify, "searched_files", listing)
    monkeypatch.setattr(TableFiles, "uploads_below", lambda *_: [] if path.exists() else [upload])
    (text,) = world.verified().blocked
    assert upload.path in text
    (text,) = world.verified().blocked
    assert f"{path.name} (segment) has 1 record of 1 key" in text
