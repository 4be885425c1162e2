"""``make demo``: the history of a git repository as a compacted topic, from the first append to the last purge.

    append ──> a sensor fires ──> its run cleans ──> append, alter ──> another sensor fires ──> its run cleans
           ──> a day passes ──> tombstones expire ──> the topic's latest values are `git ls-tree -r HEAD` ──> purge

Everything goes through the real Dagster sensors and jobs, in this process, so that one Spark session serves them all.
Only the clock is set: it starts a day after now (or after the newest commit, if that is later), so that nothing counts
as still being written, and goes forward where the story says so.

The topic and the runs stay, for ``make dev`` to show.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from examples.generated_history import generate_repository
from examples.git_history import commit_count, git_history, git_tree, is_shallow
from keptlog.cleaner import observe
from keptlog.errors import InvalidConfig, KeptlogError
from keptlog.home import Home, new_id, open_home
from keptlog.log.iso_time import iso_time
from keptlog.log.record import NewRecord
from keptlog.log.segment import total_bytes
from keptlog.settings import home_path
from orchestration.definitions import build_defs
from orchestration.sensors import SENSORS
from resources.clock import ClockResource
from resources.log_store import LogStoreResource

TOPIC = "demo.git-history"
SETTINGS = {"cleanup.policy": "compact", "segment.ms": "3600000", "delete.retention.ms": "86400000"}
_DAY_MS = 86_400_000
_FEWEST_COMMITS = 10
_QUIET: dict[str, Any] = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass
class Demo:
    """One telling of the story. ``now_ms`` is the clock by which logs are judged."""

    home: Home
    instance: dg.DagsterInstance
    now_ms: int

    def append(self, records: Sequence[NewRecord], batches: int) -> None:
        """Append records in several batches, each a segment of its own in every partition."""
        length = -(-len(records) // batches)
        for start in range(0, len(records), length):
            self.home.store.append(TOPIC, records[start : start + length], new_id(), self.now_ms)
        say(f"appended {len(records)} records in {batches} batches")

    def show(self) -> None:
        """Print every log's sections."""
        for each in observe(self.home.store, [TOPIC], now_ms=self.now_ms):
            sections = each.sections
            say(
                f"  {each.log.topic_partition}: clean {_records(sections.clean)}, dirty {_records(sections.dirty)}; "
                f"dirty ratio {each.cleanable_ratio:.2f}, late by {each.max_compaction_delay_ms // 3_600_000} h"
            )

    def tick(self) -> int:
        """Evaluate the three sensors as the daemon would, and carry out the runs they ask for; gives their number."""
        requested = 0
        definitions = build_defs(self._log_store, {"clock": self._clock})
        for sensor in SENSORS:
            context = dg.build_sensor_context(
                instance=self.instance,
                resources={"log_store": self._log_store, "clock": self._clock},
                sensor_name=sensor.name,
            )
            data = sensor.evaluate_tick(context)
            for event in data.asset_events:
                self.instance.report_runless_asset_event(event)
            if not data.run_requests:
                say(f"  {sensor.name}: {data.skip_message}")
            for request in data.run_requests or ():
                requested += 1
                say(f"  {sensor.name}: FIRES for {request.tags['keptlog/topic_partitions']}")
                self.run(
                    definitions,
                    "clean_logs",
                    dict(request.run_config),
                    {**request.tags, "dagster/sensor_name": sensor.name},
                )
        return requested

    def run(self, definitions: dg.Definitions, job: str, run_config: dict[str, Any], tags: dict[str, str]) -> None:
        """Carry out one run and tell what its commit reports."""
        started = time.monotonic()
        result = definitions.resolve_job_def(job).execute_in_process(
            run_config=run_config | _QUIET, tags=tags, instance=self.instance
        )
        say(f"    run {result.run_id[:8]} of {job} took {time.monotonic() - started:.1f} s")
        for event in result.get_asset_materialization_events():
            metadata = event.materialization.metadata
            if "records_in" in metadata:
                say(f"    {event.partition}: {event.materialization.description}")
                say(f"      {metadata['bytes_in'].value:,} bytes before, {metadata['bytes_out'].value:,} after")

    def purge(self) -> None:
        """Delete what the cleans have replaced."""
        before = self._stored_bytes()
        self.run(build_defs(self._log_store, {"clock": self._clock}), "purge", {}, {})
        say(f"  data files on the storage: {before:,} bytes before, {self._stored_bytes():,} after")

    def is_equal_to(self, truth: dict[bytes, bytes]) -> bool:
        """Whether the topic's latest values are git's tree."""
        latest = {record.key: record.value for _, record in self.home.store.read(TOPIC, latest=True)}
        say(f"  git ls-tree -r HEAD: {len(truth)} files; keptlog read --latest: {len(latest)} keys")
        return latest == truth

    @property
    def _log_store(self) -> LogStoreResource:
        return LogStoreResource(home=str(self.home.path))

    @property
    def _clock(self) -> ClockResource:
        return ClockResource(now_ms=self.now_ms)

    def _stored_bytes(self) -> int:
        return sum(file.size_bytes for file in self.home.store.files.list(self.home.store.data_location(TOPIC)))


def tell(repository: Path, home: Home, instance: dg.DagsterInstance) -> bool:
    """Tell the story of one repository; says whether the topic ended up equal to git's tree."""
    records = list(git_history(repository))
    tombstones = sum(record.value is None for record in records)
    newest_ms = max(record.timestamp_ms for record in records)
    demo = Demo(home, instance, max(newest_ms, time.time_ns() // 1_000_000) + _DAY_MS)
    commits = commit_count(repository)
    say(f"{commits:,} commits are {len(records):,} records, {tombstones:,} of them tombstones (deleted files)")
    home.store.create_topic(TOPIC, 2, SETTINGS)
    most = len(records) * 3 // 4

    chapter(f"1. Dirty. The older three quarters are appended; the clock says {iso_time(demo.now_ms)}")
    demo.append(records[:most], 3)
    demo.show()
    demo.tick()
    demo.show()

    chapter(
        "2. Late. The rest is appended; the ratio may now be 0.99, but nothing may be dirty for longer than 12 hours"
    )
    home.store.alter_topic(TOPIC, {"min.cleanable.dirty.ratio": "0.99", "max.compaction.lag.ms": str(_DAY_MS // 2)})
    demo.append(records[most:], 2)
    demo.show()
    demo.tick()
    demo.show()

    chapter("3. Again. A second look changes nothing: no sensor fires")
    quiet = demo.tick() == 0

    demo.now_ms += _DAY_MS
    chapter(f"4. A day passes (delete.retention.ms); the clock says {iso_time(demo.now_ms)}")
    demo.tick()
    demo.show()

    chapter("5. The proof")
    equal = demo.is_equal_to(git_tree(repository))
    say("  equal: every file, every blob" if equal else "  NOT EQUAL: please report this")

    demo.now_ms += _DAY_MS
    chapter("6. Purge. What was replaced leaves the storage")
    demo.purge()
    return equal and quiet


def say(line: str) -> None:
    """One line of the story."""
    print(line, flush=True)


def chapter(title: str) -> None:
    """A heading."""
    say(f"\n{title}")


@contextmanager
def chosen_repository(given: Path | None) -> Iterator[Path]:
    """The repository that was asked for, this clone, or a generated one if this clone has too little to tell."""
    repository = given or Path(__file__).resolve().parent.parent
    try:
        if given or (not is_shallow(repository) and commit_count(repository) >= _FEWEST_COMMITS):
            say(f"the history of {repository} as a changelog: key = path, value = blob, tombstone = deletion")
            yield repository
            return
        reason = "too shallow or too young"
    except InvalidConfig:
        reason = "no git repository"
    with tempfile.TemporaryDirectory() as folder:
        say(f"this clone is {reason} for a story: a generated repository takes its place")
        yield generate_repository(Path(folder) / "repository.git")


def demo_home() -> Home:
    """The user's home if it has nothing but this demo in it, else one beside it.

    The demo sets the clock forward, and nobody else's tombstones may expire by that.

    Raises:
        InvalidConfig: a catalog configured elsewhere holds other topics.
    """
    home = open_home(home_path())
    if set(home.store.topics()) - {TOPIC}:
        home = open_home(home.path.with_name(f"{home.path.name}-demo"))
    others = set(home.store.topics()) - {TOPIC}
    if others:
        raise InvalidConfig(
            f"the catalog holds other topics ({', '.join(sorted(others)[:3])}) whose tombstones the demo's clock would "
            "expire: run it with KEPTLOG_HOME on an empty folder and no PyIceberg catalog named keptlog"
        )
    if TOPIC in home.store.topics():
        home.store.delete_topic(TOPIC)
    return home


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; 0 if the proof holds."""
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("repository", nargs="?", type=Path, help="a git repository; this clone by default")
    given = parser.parse_args(arguments).repository
    started = time.monotonic()
    warnings.simplefilter("ignore", dg.BetaWarning)  # Dagster's own use of its own beta parameters
    try:
        home = demo_home()
        with chosen_repository(given) as repository, dg.DagsterInstance.get() as instance:
            proved = tell(repository, home, instance)
    except KeptlogError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    chapter(f"Done in {time.monotonic() - started:.0f} s. To look at it:")
    shown = "" if home.path == home_path() else f"KEPTLOG_HOME={home.path} "
    say(f"  {shown}make dev                          then http://localhost:3000: assets, partitions, checks, runs")
    say(f"  {shown}.venv/bin/keptlog explain {TOPIC} 0")
    say(f"  {shown}.venv/bin/keptlog read {TOPIC} --latest")
    return 0 if proved else 1


def _records(segments: Sequence[Any]) -> str:
    count = sum(segment.record_count for segment in segments)
    return f"{count:,} records ({len(segments)} segments, {total_bytes(segments):,} bytes)"


if __name__ == "__main__":
    sys.exit(main())
