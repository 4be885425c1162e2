"""A real ``dagster dev``: webserver, daemon and code server, with the shipped ``dagster.yaml`` and a home of its own.

It is started once for all tests here, and whatever happens all its processes are gone afterwards. Every wait has a
deadline, and a test that runs into it shows what Dagster last said.

The pictures of the documentation are made by these tests:

    KEPTLOG_PICTURES=$PWD/docs/images KEPTLOG_PAGES_TOPICS=300 pytest tests/e2e
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from playwright.sync_api import Browser, Error, Locator, Page, sync_playwright

from examples.ports import free_port
from keptlog.dagster.resources.log_store import LogStoreResource
from keptlog.log.record import NewRecord
from keptlog.log.source import SourceIdentity
from keptlog.table.store import LogStore
from tests.mock_broker import MockBroker, mock_broker

ROOT = Path(__file__).parents[2]
HOUR_MS = 3_600_000
PAGE_MS = 60_000
"""A page asks for much when it is first opened, and the machine may be busy."""
Found = TypeVar("Found")
Picture = Callable[..., None]
ELSEWHERE = """home => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode())
        for (let n = home.length; n > 8; n--)  // a text may be cut short
            texts.currentNode.data = texts.currentNode.data.replaceAll(home.slice(0, n), "/srv/keptlog");
}"""
"""A picture shows no folder of a test."""


@dataclass
class DagsterDev:
    """A running instance and the home that it looks after."""

    port: int
    home: Path
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def store(self) -> LogStore:
        return LogStoreResource(home=str(self.home)).store

    def append(self, topic: str, *records: tuple[str, str | None]) -> None:
        """Append key-value pairs as one segment that has left the active one by its age."""
        now_ms = time.time_ns() // 1_000_000
        new = [NewRecord(k.encode(), v.encode() if v else None, now_ms - 2 * HOUR_MS, 0) for k, v in records]
        self.store.append(topic, new, f"{topic}-{now_ms}", now_ms)

    def records(self, topic: str) -> list[tuple[int, bytes | None]]:
        return [(record.offset, record.value) for _, record in self.store.read(topic)]

    def query(self, text: str, **variables: object) -> Any:
        """Ask GraphQL, as the UI does."""
        body = json.dumps({"query": text, "variables": variables}).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        with contextlib.closing(connection):
            connection.request("POST", "/graphql", body, {"Content-Type": "application/json"})
            answer = json.load(connection.getresponse())
        assert "errors" not in answer, answer["errors"]
        return answer["data"]

    def runs(self) -> list[dict[str, Any]]:
        """All runs, newest first, with their tags."""
        text = "{runsOrError {... on Runs {results {runId status jobName tags {key value}}}}}"
        runs = self.query(text)["runsOrError"]["results"]
        return [run | {"tags": {tag["key"]: tag["value"] for tag in run["tags"]}} for run in runs]

    def wait_for(self, what: str, find: Callable[[], Found | None], seconds: float = 600) -> Found:
        """What ``find`` finds, once it does."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = find()
            if found:
                return found
            time.sleep(1)
        pytest.fail(f"no {what} after {seconds} s; the end of dagster's log:\n{self.log.read_text()[-4000:]}")

    def wait_for_run(self, what: str, *, is_it: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The run that ``is_it`` means, once it has succeeded."""

        def finished() -> dict[str, Any] | None:
            run = next((run for run in self.runs() if is_it(run)), None)
            if run and run["status"] in {"FAILURE", "CANCELED"}:
                pytest.fail(f"{what} ended as {run['status']}; dagster's log:\n{self.log.read_text()[-4000:]}")
            return run if run and run["status"] == "SUCCESS" else None

        return self.wait_for(what, finished)


@pytest.fixture(scope="module")
def kafka() -> Iterator[MockBroker]:
    """A broker with records that nobody has read yet."""
    with mock_broker() as broker:
        timestamp_ms = time.time_ns() // 1_000_000 - 2 * HOUR_MS
        broker.produce("crm.profiles", ("a", "1"), ("b", "1"), ("a", "2"), timestamp_ms=timestamp_ms)
        yield broker


@pytest.fixture(scope="module")
def dagster_dev(tmp_path_factory: pytest.TempPathFactory, kafka: MockBroker) -> Iterator[DagsterDev]:
    folder = tmp_path_factory.mktemp("dagster-dev")
    shutil.copy(ROOT / "dagster.yaml", folder)
    port = free_port()
    dev = DagsterDev(port, folder / "home", folder / "dagster.log")
    for topic, ratio in (("server.schema.users", "0.5"), ("by-hand", "1")):
        settings = {"cleanup.policy": "compact", "segment.ms": str(HOUR_MS), "min.cleanable.dirty.ratio": ratio}
        dev.store.create_topic(topic, 1, settings)
        dev.append(topic, ("a", "1"), ("b", "1"), ("a", "2"))
    dev.store.create_topic("profiles", 1, {"cleanup.policy": "compact", "segment.ms": str(HOUR_MS)})
    dev.store.ingest("profiles", [], SourceIdentity("crm.profiles", None, kafka.bootstrap), 1, "remember-its-source")
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(folder),
        "KEPTLOG_HOME": str(dev.home),
        "KEPTLOG_SPARK_MASTER": "local[2]",
        "PYTHONPATH": str(ROOT),
    }
    command = [
        sys.executable,
        "-m",
        "dagster",
        "dev",
        "-w",
        "workspace.yaml",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    with dev.log.open("w") as log:
        process = subprocess.Popen(
            command, env=environment, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            dev.wait_for("answer from the webserver", lambda: _answers(dev, process))
            dev.store.create_topic("later", 1, {"cleanup.policy": "compact"})
            yield dev
        finally:
            _stop(process)


def _answers(dev: DagsterDev, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, f"dagster dev ended:\n{dev.log.read_text()[-4000:]}"
    try:
        text = "{repositoriesOrError {... on RepositoryConnection {nodes {name}}}}"
        return bool(dev.query(text)["repositoriesOrError"].get("nodes"))
    except (OSError, http.client.HTTPException, json.JSONDecodeError):
        return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End it as Ctrl-C would, and whatever of its session is left by force."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(30)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(120)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium: the system's, or playwright's own."""
    with sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(
                executable_path=shutil.which("chromium") or shutil.which("google-chrome"), args=["--no-sandbox"]
            )
        except Error as error:
            pytest.skip(f"there is no browser here, the pages were not looked at: {str(error).splitlines()[0]}")
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    opened = browser.new_page(viewport={"width": 1440, "height": 900})
    opened.set_default_timeout(60_000)
    yield opened
    opened.close()


@pytest.fixture
def picture(page: Page, dagster_dev: DagsterDev) -> Picture:
    """Takes a picture of the page as it is now, where pictures are wanted."""
    folder = os.environ.get("KEPTLOG_PICTURES")

    def take(name: str, height: int, width: int = 1280, top: Locator | None = None) -> None:
        if folder is None:
            return
        hide = page.get_by_text("Hide navigation")
        if hide.count() and hide.first.is_visible():
            hide.first.click()
        page.set_viewport_size({"width": width, "height": height})
        if top:
            top.scroll_into_view_if_needed()
        page.wait_for_timeout(1_500)
        page.evaluate(ELSEWHERE, str(dagster_dev.home))
        page.screenshot(path=Path(folder) / f"{name}.png")

    return take
