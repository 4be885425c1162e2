"""A home whose clock is ours, the people who look after it, and what they were told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from keptlog.home import new_id, open_home
from keptlog.log.record import NewRecord
from keptlog.passes.clean import Cleaner
from keptlog.table.store import LogStore
from tests.cli.conftest import Outcome, Run, home, keptlog
from tests.in_process import in_process_engine
from tests.notify.servers import HttpInbox, MailInbox, web_server

__all__ = ["home", "keptlog"]

NOW_MS = 1_800_000_000_000
MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS
SETTINGS = {"cleanup.policy": "compact", "segment.ms": "1000"}


@dataclass
class Scene:
    """A home whose clock is ours."""

    keptlog: Run
    home: Path
    environment: pytest.MonkeyPatch
    now_ms: int = NOW_MS
    _store: list[LogStore] = field(default_factory=list)

    @property
    def store(self) -> LogStore:
        if not self._store:
            self._store.append(open_home(self.home).store)
        return self._store[0]

    def topic(self, name: str = "users", **settings: str) -> None:
        config = SETTINGS | {key.replace("_", "."): value for key, value in settings.items()}
        self.store.create_topic(name, 1, config)
        records = [NewRecord(b"key-of-a-person", value, NOW_MS - DAY_MS, 0) for value in (b"1", b"2")]
        self.store.append(name, records, new_id(), NOW_MS)

    def clean(self, topic: str) -> None:
        cleaner = Cleaner(self.store, in_process_engine(self.store.files))
        cleaner.commit(cleaner.stage(cleaner.begin([topic], new_id(), now_ms=self.now_ms, requested=True)))

    def break_log(self, topic: str = "users") -> Callable[[], None]:
        """Make its segment unreadable and let a clean fail; mends it and cleans when it is called."""
        path = Path(self.store.logs(topic)[0].segments[0].path.removeprefix("file://"))
        content = path.read_bytes()
        path.write_bytes(b"this is no Parquet file")
        self.clean(topic)

        def mend() -> None:
            path.write_bytes(content)
            self.clean(topic)

        return mend

    def notify(self, *options: str, after_ms: int = 5 * MINUTE_MS) -> Outcome:
        """A look, some time after the one before, by a process that knows nothing of it."""
        self.now_ms += after_ms
        self.environment.setenv("KEPTLOG_NOW_MS", str(self.now_ms))
        return self.keptlog("notify", *(options or ["--once"]))

    def webhook(self, inbox: HttpInbox) -> None:
        self.environment.setenv("KEPTLOG_NOTIFY_WEBHOOK_URL", inbox.url)

    def mail(self, inbox: MailInbox) -> None:
        given = {
            "HOST": "127.0.0.1",
            "PORT": str(inbox.port),
            "TLS": "none",
            "FROM": "k@example.org",
            "TO": "a@example.org",
        }
        for name, text in given.items():
            self.environment.setenv(f"KEPTLOG_NOTIFY_SMTP_{name}", text)


@pytest.fixture
def scene(keptlog: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setenv("KEPTLOG_NOTIFY_NAME", "crm")
    return Scene(keptlog, home, monkeypatch)


@pytest.fixture
def posts(scene: Scene) -> Iterator[HttpInbox]:
    """A web server that the home's people are reached by."""
    with web_server() as inbox:
        scene.webhook(inbox)
        yield inbox


def told(inbox: HttpInbox) -> list[tuple[str, str, str]]:
    """What has arrived: event, condition and subject."""
    return [(each["event"], each["condition"], each["subject"]) for body in inbox.taken for each in body["events"]]
