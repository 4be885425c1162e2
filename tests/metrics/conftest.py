"""A home with all kinds of trouble, and the same mended; what is scraped of both."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from keptlog.home import new_id
from keptlog.log.record import NewRecord
from keptlog.log.source import Arrival, OffsetRange, SourceIdentity
from keptlog.notify.checks import leave_checks
from keptlog.notify.ticks import leave_tick
from tests.broken_topics import BREAKAGES
from tests.cli.conftest import Run, home, keptlog
from tests.metrics.promql import Scrape
from tests.mock_broker import MockBroker
from tests.notify.conftest import DAY_MS, MINUTE_MS, NOW_MS, SETTINGS, Scene, scene

__all__ = ["Run", "home", "keptlog", "scene"]

LATER_MS = NOW_MS + 4 * DAY_MS
"""When the home is looked at: what began at ``NOW_MS`` is wrong by then."""
KEY = "key-of-a-person"


def scrape_text(scene: Scene, *options: str) -> str:
    """What ``keptlog metrics write`` tells as of the scene's time."""
    scene.environment.setenv("KEPTLOG_NOW_MS", str(scene.now_ms))
    return scene.keptlog("metrics", "write", "-", *options).out


def scraped(scene: Scene, *options: str) -> Scrape:
    return Scrape.of(scrape_text(scene, *options), scene.now_ms / 1000)


class Troubles:
    """One of each kind of trouble, in topics of their own; each is mended as a person would mend it."""

    def __init__(self, scene: Scene, broker: MockBroker) -> None:
        self.scene, self.store, self.broker = scene, scene.store, broker
        scene.environment.setenv("KEPTLOG_NOW_MS", str(NOW_MS))
        self._mend_log = self._break_a_log()
        self._slow_logs()
        self._superseded_files()
        self._slow_reader()
        self._erasures()
        self._sources()
        self._mend_file = self._unreadable_topic()
        leave_checks(scene.home, {"held-0": {"G1": "a file is damaged"}})
        leave_tick(scene.home, "crm_", NOW_MS, 30_000)
        (scene.home / "server.properties").write_text("log.cleaner.enable=false\n")
        scene.environment.setenv("KEPTLOG_SPARK_MASTER", "sc://127.0.0.1:1/;token=planted-connect-token")
        scene.now_ms = LATER_MS

    def mend(self) -> None:
        scene, store = self.scene, self.store
        scene.environment.setenv("KEPTLOG_NOW_MS", str(LATER_MS))
        (scene.home / "server.properties").unlink()
        scene.environment.setenv("KEPTLOG_SPARK_MASTER", "local[2]")
        self._mend_file()
        self._mend_log()
        for topic in ("late", "soon"):
            scene.clean(topic)
        assert scene.keptlog("reader", "remove", "reading", "ada").code == 0
        for topic in ("overdue", "promised", "far"):
            store.delete_topic(topic, LATER_MS)
        self.broker.produce("stopped", *[("a", "2")] * 20)
        self._ingest("behind", 1, 10_002)
        leave_checks(scene.home, {"held-0": {"G1": None}})
        leave_tick(scene.home, "crm_", LATER_MS, 30_000)
        assert scene.keptlog("purge").code == 0

    def _break_a_log(self) -> Callable[[], None]:
        self.scene.topic("users")
        return self.scene.break_log("users")

    def _slow_logs(self) -> None:
        self.scene.topic("late", max_compaction_lag_ms=str(60 * MINUTE_MS))
        self.scene.topic("soon", max_compaction_lag_ms=str(5 * DAY_MS + 30 * MINUTE_MS))

    def _superseded_files(self) -> None:
        """Nobody has purged since a clean."""
        self.scene.topic("held")
        self.scene.clean("held")

    def _slow_reader(self) -> None:
        self.store.create_topic("reading", 1, SETTINGS | {"delete.retention.ms": "1000"})
        records = [NewRecord(KEY.encode(), value, NOW_MS - DAY_MS, 0) for value in (b"1", None)]
        self.store.append("reading", records, new_id(), NOW_MS)
        assert self.scene.keptlog("reader", "add", "reading", "ada").code == 0
        self.scene.clean("reading")

    def _erasures(self) -> None:
        for topic, by in (("overdue", "1h"), ("promised", f"{4 * 24 * 60 + 5}m")):
            self.scene.topic(topic)
            asked = self.scene.keptlog("erase", topic, "--key", KEY, "--by", by, "--yes")
            assert asked.code == 0, asked.err

    def _sources(self) -> None:
        """One has read more than its broker has, one less, and one has a broker that is gone."""
        self.broker.produce("stopped", ("a", "1"))
        self.broker.produce("behind", *[("a", "1")] * 10_002)
        for topic in ("stopped", "behind", "far"):
            self.store.create_topic(topic, 4, SETTINGS)
        self._ingest("stopped", None, 10)
        self._ingest("behind", None, 1)
        source = SourceIdentity("far", bootstrap="127.0.0.1:1")
        self.store.ingest("far", [Arrival(OffsetRange(0, None, 0, 1), ())], source, 4, new_id())

    def _ingest(self, topic: str, position: int | None, end_offset: int) -> None:
        source = SourceIdentity(topic, bootstrap=self.broker.bootstrap)
        arrival = Arrival(OffsetRange(0, position, position or 0, end_offset), ())
        self.store.ingest(topic, [arrival], source, 4, new_id())

    def _unreadable_topic(self) -> Callable[[], None]:
        self.scene.topic("unreadable")
        path = Path(self.store.metadata_locations()["unreadable"].removeprefix("file://"))
        content = path.read_bytes()
        BREAKAGES[0](self.store, "unreadable")

        def mend() -> None:
            path.write_bytes(content)

        return mend
