"""What bounds a goal that is not met, and what was tried for it: shown below the goals of its case.

Results are measured, and this is written by people. So it stands apart from them, by case and goal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_REWRITE = (
    "about half of a task's CPU is the encoding of what survives, 30 % the decoding, 15 % the map and the look-ups. "
    "Done: values as views (ADR 73), a join instead of a table of keys (ADR 69), memory that is kept (ADR 77), workers "
    "that begin with their imports done (ADR 78), tasks of even work, marks in place of a sorted list. Tried: columns "
    "read, filtered and written in small batches, other allocators, huge pages, checksums made after writing, threads "
    "of one worker in place of workers (nothing), a filter before the look-up (it costs what it saves). PyArrow can't "
    "skip pages, nor copy the chunk of a column undecoded"
)
_RANDOM_KEYS = (
    f"{_REWRITE}. The machine's speed changes from minute to minute: six runs of this case, on two processors, "
    "gave 1.10 to 1.28 of the floor, 0.75 to 0.95 of Polars, 0.52 to 0.64 of DuckDB. A run with new workers, for "
    "Spark ends those that were idle for a minute, takes a fifth longer"
)
_MAP = (
    "nearly 80 % of a task's CPU is the decoding and the grouping of all keys, as much each. Of values only row groups "
    "with a survivor are read. Tried: values as views (within the noise here). How much it is of the others' time is "
    "up to the processor: on an AMD EPYC, at commit 94601d02, five rounds gave 0.86 of DuckDB and 0.73 of Polars, and "
    "three rounds of 20 M records 0.98 and 0.77"
)
_SMALL_LOGS = (
    "a log costs the opening of its files and some calls for each. Tried: one reader for files below a MiB, and row "
    "groups that survive handed over together (ADR 73), a tenth each"
)
_RUNS = (
    "200 runs of one log each take 46 ms each, nearly all of it the start of a job and of its tasks. The one run for "
    "all takes as long as the work itself, see above"
)
_MEMORY = (
    "two workers hold 400 MB each, Java 250, the workers' parent and the driver 130 each; what they share counts for "
    "each, and counted once they are 250 MB less. Done: a small first heap of Java (80 MB less). Tried: memory given "
    "back before the rewrite (it climbs back), threads of one worker that share a map (200 MB less; small logs then "
    "take 1.4 of the time, for Python opens their files one at a time), Arrow's other allocator, jemalloc (80 MB less "
    "a worker, 15 % more CPU), memory kept for a second in place of a minute (50 MB less a worker, 4 % more CPU), "
    "look-ups of fewer keys at once (nothing). Kept between tasks, it is 100 MB more and an eighth of the CPU less "
    "(ADR 77)"
)
_VERSIONS = (
    "the version of every record is read and compared, where an offset is where the record stands: in one process that "
    "is 1.07 times the CPU by timestamp and 1.22 by header, and beside it is one more job of Spark"
)
_KAFKA = "Kafka's Cleaner copies batches of records, and writes no columns; ours decodes and encodes both"
_SHARE = "what is left is the reading of keys, from which row groups without a dirty key are left out (ADR 68)"
_TIME_ORDER = (
    "a seventh of the log is written anew: dirty records, the newest clean ones, one old segment. That alone is what "
    "the goal allows for all. Beside it are the map of the dirty keys and a job of Spark. Row groups without a dirty "
    "key are not read (ADR 68)"
)
REASONS: Mapping[tuple[str, str], str] = {
    ("W1", "time / floor"): _RANDOM_KEYS,
    ("W1", "time / polars"): _RANDOM_KEYS,
    ("W1", "time / duckdb"): _RANDOM_KEYS,
    ("W1", "GB of memory of all processes"): _MEMORY,
    ("W2", "time / floor"): _REWRITE,
    ("W2", "time / polars"): _REWRITE,
    ("W2", "time / duckdb"): _REWRITE,
    ("W3", "time / floor"): _SHARE,
    ("W4", "time / duckdb"): _MAP,
    ("W4", "time / polars"): _MAP,
    ("W5", "time / duckdb"): _SMALL_LOGS,
    ("W5", "time / polars"): _SMALL_LOGS,
    ("W5", "time / keptlog_each"): _RUNS,
    ("W6", "time / duckdb_2kB"): _REWRITE,
    ("W7", "keptlog_timestamp / by offset"): _VERSIONS,
    ("W7", "keptlog_header / by offset"): _VERSIONS,
    ("W8", "records/s per core, times kafka_none"): _KAFKA,
    ("W8", "records/s per core, times kafka_zstd"): _KAFKA,
    ("W11", "time / floor"): _TIME_ORDER,
    ("W11", "time / duckdb"): _TIME_ORDER,
    ("W10", "GB of memory of all processes"): _MEMORY,
}
"""By the name of a case and the text of a goal."""


def reasons(case: str, goals: Iterable[Mapping[str, object]]) -> Iterable[str]:
    """A line for each goal of a case that is not met, as far as there is something to say."""
    for goal in goals:
        text = str(goal["text"])
        if not goal["met"] and (case, text) in REASONS:
            yield f"- **{text}**: {REASONS[case, text]}"
