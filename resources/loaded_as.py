"""What a topic's records are loaded as: the type that the parameter of an asset or op is annotated with.

    pyarrow.Table, polars.DataFrame                           all records, in memory
    pyarrow.RecordBatchReader                                 a row group at a time, once
    polars.LazyFrame, duckdb.DuckDBPyRelation                 a row group at a time, at each query
    pyspark.sql.DataFrame                                     on Spark's workers, a task for each topic-partition

Nobody needs to install an engine that he does not use: who annotates with its type has imported it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from keptlog.errors import InvalidConfig

if TYPE_CHECKING:
    import polars as pl

    from keptlog.dagster.resources.spark import SessionSource
    from keptlog.table.reading.record_stream import RecordStream

Loaded = Callable[["RecordStream", "SessionSource"], object]


def loaded_as(annotation: Any, of: str) -> Loaded:
    """How records become what an annotation says; ``of`` names the input.

    Raises:
        InvalidConfig: nothing of ours becomes that.
    """
    for kind in getattr(annotation, "__mro__", ()):
        found = _WAYS.get((kind.__module__.partition(".")[0], kind.__qualname__))
        if found:
            return found
    *some, last = (f"{package}.{name}" for package, name in _WAYS)
    named = isinstance(annotation, type) and annotation is not Any
    has = f"{annotation.__module__}.{annotation.__qualname__}" if named else "none"
    raise InvalidConfig(f"{of} can't be loaded: annotate its parameter with {', '.join(some)} or {last}; it has {has}")


def _arrow_table(stream: RecordStream, session: SessionSource) -> object:
    del session
    return stream.to_reader().read_all()


def _arrow_reader(stream: RecordStream, session: SessionSource) -> object:
    del session
    return stream.to_reader()


def _polars_frame(stream: RecordStream, session: SessionSource) -> object:
    import polars as pl  # noqa: PLC0415

    del session
    return pl.from_arrow(stream.to_reader().read_all())


def _polars_lazy(stream: RecordStream, session: SessionSource) -> object:
    import polars as pl  # noqa: PLC0415
    from polars.io.plugins import register_io_source  # noqa: PLC0415

    def read(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _batch_rows: int | None
    ) -> Iterator[pl.DataFrame]:
        # A frame without a column has no rows to count.
        for batch in stream.batches(stream.columns[:1] if columns == [] else columns):
            frame = pl.DataFrame(batch)
            frame = frame if rows is None else frame.head(rows)
            rows = None if rows is None else rows - frame.height
            yield frame if predicate is None else frame.filter(predicate)
            if rows == 0:
                return

    del session
    return register_io_source(read, schema=pl.DataFrame(stream.schema.empty_table()).schema)


def _duckdb_relation(stream: RecordStream, session: SessionSource) -> object:
    import duckdb  # noqa: PLC0415

    del session
    return duckdb.from_arrow(stream)


def _spark_frame(stream: RecordStream, session: SessionSource) -> object:
    from keptlog.spark.frames import frame_of  # noqa: PLC0415

    return frame_of(session(), stream.logs, stream.schema, stream.reader.files.task_modules)


_WAYS: Mapping[tuple[str, str], Loaded] = {
    ("pyarrow", "Table"): _arrow_table,
    ("pyarrow", "RecordBatchReader"): _arrow_reader,
    ("polars", "DataFrame"): _polars_frame,
    ("polars", "LazyFrame"): _polars_lazy,
    ("duckdb", "DuckDBPyRelation"): _duckdb_relation,
    ("pyspark", "DataFrame"): _spark_frame,
}
"""By the package and the name of a type."""
