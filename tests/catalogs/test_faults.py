"""Faults before a REST catalog that is right: what could not be tried is not looked at, and nothing is broken."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog

from examples.lake.fault_proxy import Fault, HttpProxy, Request, http_proxy
from keptlog.table.catalogs.rest import PatientRestCatalog
from keptlog.table.doctor.catalog_probe import Answer
from keptlog.table.doctor.scratch import Scratch, left_over
from tests.catalogs.scratches import results_of
from tests.table import rest_server as a_rest
from tests.table.rest_server import rest_server
from tests.table.stores import new_id

PROBES = ("compare and swap", "one commit", "one snapshot", "lost answer", "wrong refusal", "snapshots")
EVERY = 5


@pytest.fixture
def proxy(rest: tuple[str, Path]) -> Iterator[HttpProxy]:
    with http_proxy(rest[0]) as started:
        yield started


@pytest.fixture
def scratch(proxy: HttpProxy) -> Scratch:
    def opened() -> RestCatalog:
        return RestCatalog("keptlog", uri=proxy.url, **{"py-io-impl": "keptlog.table.io.file_io.DurableFileIO"})

    return Scratch(opened(), opened, f"keptlog_doctor_1_{new_id()[:8]}", new_id, lambda _: None)


def is_commit(request: Request) -> bool:
    return request.method == "POST" and "/tables/" in request.path


def each_so_many_commits(fault: Fault) -> Callable[[Request], Fault | None]:
    numbers = itertools.count()
    return lambda request: fault if is_commit(request) and next(numbers) % EVERY == 1 else None


@pytest.mark.parametrize("fault", Fault)
def test_a_fault_now_and_then_breaks_no_promise(proxy: HttpProxy, scratch: Scratch, fault: Fault) -> None:
    proxy.fault = each_so_many_commits(fault)
    found = {each.probe.name: (each.answer, each.seen) for each in results_of(scratch, *PROBES)}
    assert proxy.injected[fault] >= len(PROBES)
    assert {name: seen for name, (answer, seen) in found.items() if answer is Answer.BROKEN} == {}
    assert found["snapshots"][0] is Answer.KEPT or fault in {
        Fault.UNAUTHORIZED,
        Fault.FORBIDDEN,
        Fault.BAD_REQUEST,
    }


@pytest.mark.parametrize("fault", [Fault.SLOW_DOWN, Fault.FORBIDDEN, Fault.SERVER_ERROR, Fault.RESET])
def test_a_catalog_that_takes_no_commit_is_not_looked_at_and_says_why(
    proxy: HttpProxy, scratch: Scratch, fault: Fault
) -> None:
    proxy.fault = lambda request: fault if is_commit(request) else None
    for result in results_of(scratch, "compare and swap", "one commit"):
        assert result.answer is Answer.NOT_LOOKED_AT, result.seen
        assert "told by the proxy" in result.seen or fault is Fault.RESET


def test_a_catalog_that_says_it_can_t_do_it_has_answered(tmp_path: Path) -> None:
    with rest_server(SqlCatalog("rows", uri=f"sqlite:///{tmp_path}/rows.db", warehouse=f"file://{tmp_path}")) as server:

        def opened() -> PatientRestCatalog:
            return PatientRestCatalog("keptlog", uri=server.uri)

        server.answers["commit"] = [a_rest.Answer(500, kind="UnsupportedOperationException")]
        scratch = Scratch(opened(), opened, f"keptlog_doctor_1_{new_id()[:8]}", new_id, lambda _: None)
        [result] = results_of(scratch, "expiry")
    assert result.answer is Answer.BROKEN
    assert "the catalog says that it can't do it" in result.seen


def test_an_answer_that_never_comes_is_not_waited_for(proxy: HttpProxy, scratch: Scratch) -> None:
    proxy.fault = lambda request: time.sleep(4) if is_commit(request) else None
    [first, second] = results_of(scratch, "one commit", "snapshots", patience_seconds=2)
    assert (first.answer, first.seen) == (Answer.NOT_LOOKED_AT, "no answer within 2 s")
    assert second.answer is Answer.NOT_LOOKED_AT


def test_what_is_taken_away_late_is_named(proxy: HttpProxy, scratch: Scratch) -> None:
    def no_drops(request: Request) -> Fault | None:
        return Fault.SLOW_DOWN if request.method == "DELETE" else None

    proxy.fault = no_drops
    results_of(scratch, "snapshots")
    [left, _] = scratch.left
    assert left.startswith(f"namespace {scratch.namespace} (")
    proxy.fault = None
    assert scratch.namespace in left_over(scratch.catalog)
    assert scratch.removed()
    assert scratch.left == []
    assert scratch.namespace not in left_over(scratch.catalog)
