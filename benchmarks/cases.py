"""The cases: which log, who cleans it, and what keptlog is to reach.

Records are scaled by ``RECORDS``; the numbers here are those of a full run. Shapes are per topic-partition.

A contender's name is its key in the result. Where a case has a second log, the names of those that clean it end in the
name of that log. ``keptlog`` is always the headline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from benchmarks.figures import KEPTLOG, Figures, Goal, Place, ratio_to
from benchmarks.generated_log import Expect, Keys, Shape
from benchmarks.peers import Setup
from benchmarks.peers.table_formats import FORMATS

_MILLION = 1_000_000
_GIGABYTE = 10**9
_MEMORY_OF_W9 = "1536m"
_UPDATED = (ratio_to("floor", 1.1), ratio_to("polars", 0.8), ratio_to("duckdb", 0.55))
"""What keptlog is to reach where keys in no order are updated."""
BESIDE_FORMATS = "-formats"
_ALSO_BESIDE_FORMATS = ("W1", "W2", "W3", "W4", "W5", "W6", "W11")
"""Those in which one way to clean is compared with others."""


@dataclass(frozen=True, slots=True)
class Contender:
    """Someone who cleans a log of a case, in one way."""

    name: str
    setup: Setup
    variant: str = ""
    expect: Expect = Expect.LATEST_BY_OFFSET
    log: str = ""
    group: str = ""

    @property
    def place(self) -> Place:
        return Place(self.name, self.group, f"{KEPTLOG}_{self.log}" if self.log else KEPTLOG)

    def on(self, log: str) -> Contender:
        """The same on another log of the case."""
        return replace(
            self, name=f"{self.name}_{log}", log=log, group=f"{self.group}_{log}" if self.group else self.group
        )


@dataclass(frozen=True, slots=True)
class Case:
    """A row of the table. ``logs`` makes the shapes from a number of records; the first is the headline's."""

    title: str
    records: int
    logs: Callable[[int], Mapping[str, Shape]]
    contenders: tuple[Contender, ...]
    goals: tuple[Goal, ...]


def all_cases(cores: int) -> dict[str, Case]:
    """All cases by name, for a machine with so many cores."""
    cases = _own_cases(cores)
    formats = {f"{name}{BESIDE_FORMATS}": _beside_formats(cases[name], cores) for name in _ALSO_BESIDE_FORMATS}
    return cases | {"W1-spark": _beside_spark(cases["W1"], cores)} | formats


def _own_cases(cores: int) -> dict[str, Case]:
    return {
        "W1": _w1(cores),
        "W2": _w2(cores),
        "W3": _w3(cores),
        "W4": _w4(cores),
        "W5": _w5(cores),
        "W6": _w6(cores),
        "W7": _w7(cores),
        "W8": _w8(),
        "W9": _w9(cores),
        "W10": _w10(cores),
        "W11": _w11(cores),
    }


def _beside_formats(case: Case, cores: int) -> Case:
    """The logs of a case for keptlog and for table formats that compact themselves.

    It is apart, because each of them takes far longer than all the others of the case: Spark's workers end meanwhile.
    """
    setups = {name: Setup("table_formats", cores, settings=(("format", name),)) for name in FORMATS}
    each = (_keptlog(cores), *(Contender(name, setup) for name, setup in setups.items()))
    others = [log for log in case.logs(case.records) if log]
    contenders = (*each, *(contender.on(log) for log in others for contender in each))
    return Case(
        f"{case.title.partition(';')[0]}; beside Hudi's and Paimon's own compaction",
        case.records,
        case.logs,
        contenders,
        (),
    )


def _keptlog(cores: int, suffix: str = "", variant: str = "") -> Contender:
    return Contender(f"{KEPTLOG}{suffix}", Setup("keptlog_clean", cores), variant)


def _peers(cores: int) -> tuple[Contender, ...]:
    """Keptlog and whatever runs without Spark."""
    plain, duckdb = Setup("plain_copies", cores), Setup("duckdb_sql", cores)
    return (
        _keptlog(cores),
        Contender("floor", plain, "floor", Expect.EVERYTHING),
        Contender("copy", plain, "copy", Expect.EVERYTHING),
        *(
            Contender(f"duckdb_{query}", duckdb, query, group="duckdb")
            for query in ("row_number", "semi_join", "anti_join")
        ),
        Contender("polars", Setup("polars_lazy", cores)),
    )


def _one(shape: Callable[[int], Shape]) -> Callable[[int], Mapping[str, Shape]]:
    return lambda records: {"": shape(records)}


def _updates(records: int) -> Shape:
    """Four fifths clean, one fifth dirty."""
    return Shape(records - records // 5, records // 5)


def _w1(cores: int) -> Case:
    return Case(
        "4 M clean + 1 M dirty, random keys, 200 B",
        5 * _MILLION,
        _one(_updates),
        _peers(cores),
        (*_UPDATED, Goal("GB of memory of all processes", lambda f: f.peak_rss_bytes(KEPTLOG) / _GIGABYTE, 1.0)),
    )


def _beside_spark(case: Case, cores: int) -> Case:
    """The log of a case for keptlog and for queries of Spark SQL; apart, for the reason for which table formats are."""
    spark = Setup("spark_sql", cores)
    queries = tuple(
        Contender(f"spark_{query}", spark, query, group="spark") for query in ("row_number", "max_by", "anti_join")
    )
    return Case(
        f"{case.title.partition(';')[0]}; beside Spark SQL",
        case.records,
        case.logs,
        (_keptlog(cores), *queries),
        (Goal("CPU / spark_row_number", lambda f: f.cpu_s[KEPTLOG] / f.cpu_s["spark_row_number"], 0.1),),
    )


def _w2(cores: int) -> Case:
    return Case(
        "4 M clean + 1 M dirty, zipf keys, 200 B",
        5 * _MILLION,
        _one(lambda records: replace(_updates(records), keys=Keys.ZIPF)),
        _peers(cores),
        _UPDATED,
    )


def _w3(cores: int) -> Case:
    def shape(records: int) -> Shape:
        # A tombstone past its horizon would have its segment rewritten.
        return Shape(records - records // 17, records // 17, Keys.NEWEST, clean_tombstones=0.0)

    def cpu_s_per_million_kept(figures: Figures) -> float:
        return figures.cpu_s[KEPTLOG] / (figures.note(KEPTLOG, "records_kept") / _MILLION)

    def written_share(figures: Figures) -> float:
        return figures.bytes_written(KEPTLOG) / figures.bytes_written("copy")

    return Case(
        "4 M clean, 250 k dirty that touch the newest 5 %",
        17 * _MILLION // 4,
        _one(shape),
        _peers(cores),
        (
            ratio_to("floor", 0.3),
            ratio_to("duckdb", 0.2),
            Goal("CPU s per M records of kept segments (all CPU)", cpu_s_per_million_kept, 0.4),
            Goal("bytes written / bytes of the log", written_share, 0.2),
        ),
    )


def _w4(cores: int) -> Case:
    return Case(
        "first clean, 10 versions a key",
        5 * _MILLION,
        _one(lambda records: Shape(0, records, Keys.TEN_VERSIONS)),
        _peers(cores),
        (ratio_to("floor", 1.0), ratio_to("duckdb", 0.9), ratio_to("polars", 0.9)),
    )


def _w5(cores: int) -> Case:
    def shape(records: int) -> Shape:
        partitions = min(200, max(4, records // 10_000))
        each = max(5, records // partitions)
        return replace(_updates(each), partitions=partitions, segments=4)

    return Case(
        "200 topic-partitions x 10 k in one run; keptlog_each: one run for each",
        2 * _MILLION,
        _one(shape),
        (*_peers(cores), _keptlog(cores, "_each", "each")),
        (ratio_to("duckdb", 1.0), ratio_to("polars", 0.9), ratio_to("keptlog_each", 0.2)),
    )


def _w6(cores: int) -> Case:
    def logs(records: int) -> Mapping[str, Shape]:
        return {
            "": replace(_updates(records), value_bytes=20),
            "2kB": replace(_updates(max(5, records // 10)), value_bytes=2000),
        }

    large = tuple(contender.on("2kB") for contender in _peers(cores))
    return Case(
        "20 B values, and a tenth as many of 2 kB",
        5 * _MILLION,
        logs,
        (*_peers(cores), *large),
        (
            ratio_to("floor", 2.0),
            ratio_to("floor_2kB", 1.15),
            ratio_to("duckdb", 0.9),
            ratio_to("duckdb_2kB", 0.5),
        ),
    )


def _w7(cores: int) -> Case:
    by_timestamp = replace(_keptlog(cores, "_timestamp", "timestamp"), expect=Expect.LATEST_BY_VERSION)
    by_header = replace(_keptlog(cores, "_header", "header"), expect=Expect.LATEST_BY_VERSION)

    def times_offset(name: str) -> Goal:
        return Goal(f"{name} / by offset", lambda f: f.wall_s[name] / f.wall_s[KEPTLOG], 1.2)

    return Case(
        "W1 with a version on every record: by offset, by timestamp, by header",
        5 * _MILLION,
        _one(lambda records: replace(_updates(records), with_versions=True)),
        (_keptlog(cores), by_timestamp, by_header),
        (times_offset(by_timestamp.name), times_offset(by_header.name)),
    )


def _w8() -> Case:
    # One core each, and no other for helpers of any kind: JIT compiler, garbage collector, Python worker.
    keptlog = Contender(KEPTLOG, Setup("keptlog_clean", 1, is_pinned=True))
    kafka = Setup("kafka_cleaner", 1, is_pinned=True)
    return Case(
        "Kafka's own Cleaner, the same records in its own format, on one core",
        5 * _MILLION,
        _one(lambda records: replace(_updates(records), clean_tombstones=0.0)),
        (
            keptlog,
            Contender("kafka_none", kafka, "none", group="kafka"),
            Contender("kafka_zstd", kafka, "zstd", group="kafka"),
        ),
        (
            Goal("records/s per core, times kafka_none", lambda f: 1 / f.ratio["kafka_none"], 3, is_least=True),
            Goal("records/s per core, times kafka_zstd", lambda f: 1 / f.ratio["kafka_zstd"], 3, is_least=True),
        ),
    )


def _w9(cores: int) -> Case:
    def shape(records: int) -> Shape:
        return Shape(records - records * 4 // 5, records * 4 // 5, Keys.UNIQUE)

    def gigabytes_per_million_keys(figures: Figures) -> float:
        keys = figures.note("keptlog_map", "keys_mapped") / _MILLION
        return figures.peak_python_rss_bytes("keptlog_map") / _GIGABYTE / keys

    # The heap has 1 GB by keptlog's own settings. The limit is that of the address space of each Python worker.
    limited = Setup("keptlog_clean", cores, settings=(("spark.executor.pyspark.memory", _MEMORY_OF_W9),))
    small_duckdb = Setup("duckdb_sql", cores, settings=(("memory_limit", "1536MB"),))
    return Case(
        "2 M clean, 8 M unique dirty keys; heap 1 GB, Python workers 1.5 GB; keptlog_map: all keys in memory, no limit",
        10 * _MILLION,
        _one(shape),
        (
            Contender(KEPTLOG, limited, "shuffle"),
            _keptlog(cores, "_map"),
            Contender("duckdb_semi_join", small_duckdb, "semi_join", group="duckdb"),
        ),
        (
            Goal("finishes, equal", lambda f: float(f.wall_s[KEPTLOG] > 0), 1, is_least=True),
            Goal("GB of Python memory per M unique dirty keys, in map mode", gigabytes_per_million_keys, 0.25),
        ),
    )


def _w10(cores: int) -> Case:
    def logs(records: int) -> Mapping[str, Shape]:
        dirty = max(1, records // 20)
        return {"": Shape(records - dirty, dirty), "quarter": Shape(max(1, records // 4 - dirty), dirty)}

    def memory_growth(figures: Figures) -> float:
        return figures.peak_rss_bytes(KEPTLOG) / figures.peak_rss_bytes("keptlog_quarter")

    plain = Setup("plain_copies", cores)
    return Case(
        "one topic-partition of 19 M clean + 1 M dirty, on all cores and on one; quarter: 4 M clean + 1 M dirty",
        20 * _MILLION,
        logs,
        (
            _keptlog(cores),
            _keptlog(1, "_1core"),
            _keptlog(cores).on("quarter"),
            Contender("floor", plain, "floor", Expect.EVERYTHING),
        ),
        (
            Goal("times as fast as on 1 core", lambda f: 1 / f.ratio["keptlog_1core"], 1.7, is_least=True),
            Goal("memory, times that of the quarter", memory_growth, 1.15),
            Goal("GB of memory of all processes", lambda f: f.peak_rss_bytes(KEPTLOG) / _GIGABYTE, 1.0),
        ),
    )


def _w11(cores: int) -> Case:
    return Case(
        "keys in time order: 4 M clean, 250 k dirty of the newest 5 % and one old key",
        17 * _MILLION // 4,
        _one(lambda records: Shape(records - records // 17, records // 17, Keys.TIME_ORDER, clean_tombstones=0.0)),
        _peers(cores),
        (ratio_to("floor", 0.15), ratio_to("duckdb", 0.1)),
    )
