"""``make demo``: the history of a git repository as a compacted topic, from the first append to the last purge.

    append ──> a sensor fires ──> its run cleans ──> append, alter ──> another sensor fires ──> its run cleans
           ──> a day passes ──> tombstones expire ──> the topic's latest values are `git ls-tree -r HEAD` ──> purge

Everything goes through the real Dagster sensors and jobs (``examples.telling``). The clock starts a day after now (or
after the newest commit, if that is later), so that nothing counts as still being written.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import dagster as dg

from examples.generated_history import generate_repository
from examples.git_history import commit_count, git_history, git_tree, is_shallow
from examples.installed import NotInstalled
from examples.telling import DAY_MS, Telling, chapter, demo_home, say, where_to_look
from examples.to_the_end import exit_code_of
from keptlog.dagster.orchestration.clean_sensors import CLEAN_SENSORS
from keptlog.errors import InvalidConfig
from keptlog.home import Home, new_id
from keptlog.log.record import NewRecord
from keptlog.log.words.iso_time import iso_time

TOPIC = "demo.git-history"
SETTINGS = {"cleanup.policy": "compact", "segment.ms": "3600000", "delete.retention.ms": "86400000"}
_FEWEST_COMMITS = 10


class Demo(Telling):
    """The telling of a repository's history."""

    def append(self, records: Sequence[NewRecord], batches: int) -> None:
        """Append records in several batches, each a segment of its own in every partition."""
        length = -(-len(records) // batches)
        for start in range(0, len(records), length):
            self.home.store.append(TOPIC, records[start : start + length], new_id(), self.now_ms)
        say(f"appended {len(records)} records in {batches} batches")

    def is_equal_to(self, truth: dict[bytes, bytes]) -> bool:
        """Whether the topic's latest values are git's tree."""
        latest = {record.key: record.value for _, record in self.home.store.read(TOPIC, latest=True)}
        say(f"  git ls-tree -r HEAD: {len(truth)} files; keptlog read --latest: {len(latest)} keys")
        return latest == truth


def tell(repository: Path, home: Home, instance: dg.DagsterInstance) -> bool:
    """Tell the story of one repository; says whether the topic ended up equal to git's tree."""
    records = list(git_history(repository))
    tombstones = sum(record.value is None for record in records)
    newest_ms = max(record.timestamp_ms for record in records)
    demo = Demo(home, instance, TOPIC, max(newest_ms, time.time_ns() // 1_000_000) + DAY_MS, CLEAN_SENSORS)
    demo.begin()
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
    home.store.alter_topic(TOPIC, {"min.cleanable.dirty.ratio": "0.99", "max.compaction.lag.ms": str(DAY_MS // 2)})
    demo.append(records[most:], 2)
    demo.show()
    demo.tick()
    demo.show()

    chapter("3. Again. A second look changes nothing: no sensor fires")
    quiet = demo.tick() == 0

    demo.now_ms += DAY_MS
    chapter(f"4. A day passes (delete.retention.ms); the clock says {iso_time(demo.now_ms)}")
    demo.tick()
    demo.show()

    chapter("5. The proof")
    equal = demo.is_equal_to(git_tree(repository))
    say("  equal: every file, every blob" if equal else "  NOT EQUAL: please report this")

    demo.now_ms += DAY_MS
    chapter("6. Purge. What was replaced leaves the storage")
    demo.purge()
    return equal and quiet


@contextmanager
def chosen_repository(given: Path | None) -> Iterator[Path]:
    """The repository that was asked for, this clone, or a generated one if this clone has too little to tell."""
    repository = given or Path(__file__).resolve().parent.parent
    reason = None if given else _too_little_to_tell(repository)
    if reason is None:
        say(f"the history of {repository} as a changelog: key = path, value = blob, tombstone = deletion")
        yield repository
        return
    with tempfile.TemporaryDirectory() as folder:
        say(f"this clone is {reason} for a story: a generated repository takes its place")
        yield generate_repository(Path(folder) / "repository.git")


def _too_little_to_tell(clone: Path) -> str | None:
    try:
        is_enough = not is_shallow(clone) and commit_count(clone) >= _FEWEST_COMMITS
    except NotInstalled:
        raise
    except InvalidConfig:
        return "no git repository"
    return None if is_enough else "too shallow or too young"


def run(given: Path | None) -> int:
    """Tell the story, and say how to look at what stays."""
    started = time.monotonic()
    with (
        chosen_repository(given) as repository,
        demo_home(TOPIC, "demo") as home,
        dg.DagsterInstance.get() as instance,
    ):
        proved = tell(repository, home, instance)
    chapter(f"Done in {time.monotonic() - started:.0f} s. To look at it:")
    where_to_look(home, TOPIC)
    return 0 if proved else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; 0 if the proof holds, 1 if not, 2 if something is missing on this machine."""
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("repository", nargs="?", type=Path, help="a git repository; this clone by default")
    given = parser.parse_args(arguments).repository
    return exit_code_of("demo", "Spark is gone", lambda: run(given))


if __name__ == "__main__":
    sys.exit(main())
