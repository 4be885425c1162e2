"""The watermarks of a log's deleted keys as a file, and as a pass leaves them: ``keptlog.log.watermark`` by columns.

before   those of the file that the step names, if the same strategy made them
beaten   of a key whose latest record is a record: it guards its key itself
new      of the tombstones that expired in this pass
after    (before - beaten), and new in place of old; less those that are past their time
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from keptlog.kernels.gone import input_gone
from keptlog.log.steps import CleanStep, Expire
from keptlog.log.words.units import LONG_MAX
from keptlog.storage.files import Files
from keptlog.storage.keys import are_among, in_order_of_keys
from keptlog.storage.versions import with_versions
from keptlog.storage.watermark_file import WATERMARKS_SCHEMA, read_watermark_file, write_watermark_file

NO_KEYS = pa.chunked_array([], pa.binary())


def no_watermarks() -> pa.Table:
    """A table of watermarks without a row."""
    return WATERMARKS_SCHEMA.empty_table()


def read_watermarks(files: Files, step: CleanStep) -> pa.Table:
    """The watermarks that the step found: those of its strategy, of ``WATERMARKS_SCHEMA``, each key once, none null.

    Raises:
        InputGone: the file is gone.
    """
    try:
        return read_watermark_file(files, step.watermarks_path, step.strategy, step.topic_partition.topic)
    except FileNotFoundError as error:
        what = f"file {step.watermarks_path} with its watermarks"
        raise input_gone(step.topic_partition, what, "this clean was planned") from error


def write_watermarks(files: Files, step: CleanStep, watermarks: pa.Table, path: str) -> None:
    """Store watermarks of the step's strategy."""
    write_watermark_file(files, path, step.strategy, watermarks)


def watermarks_of(tombstones: pa.Table, step: CleanStep) -> pa.Table:
    """What tombstones (``SCHEMA``; ``value`` may lack) leave that go now, by their horizon: ``WATERMARKS_SCHEMA``.

    Those without a version or without a key leave nothing.
    """
    tombstones = with_versions(tombstones, step.strategy).filter(
        pc.field("version").is_valid() & pc.field("key").is_valid()
    )
    # A retention may mean "never": the sum must fit into a column.
    expires_ms = pa.repeat(min(step.now_ms + step.watermark_retention_ms, LONG_MAX), tombstones.num_rows)
    columns = {"key": tombstones["key"], "version": tombstones["version"], "expires_ms": expires_ms}
    return pa.table(columns).cast(WATERMARKS_SCHEMA)


def watermarks_after(before: pa.Table, new: pa.Table, beaten: pa.ChunkedArray, step: CleanStep) -> pa.Table:
    """The watermarks of a log after a pass, in the order of their keys. An expiry forgets none by its time.

    ``before`` and ``new`` are of ``WATERMARKS_SCHEMA``, ``beaten`` is binary without nulls, all in any order.
    """
    is_in_time = pc.field("expires_ms") > step.now_ms
    new = new.filter(is_in_time)  # with no retention at all none is new, and none replaces one that was there
    replaced = are_among(before["key"], pa.chunked_array([*beaten.chunks, *new["key"].chunks], pa.binary()))
    left = before.filter(pc.invert(replaced))
    if not isinstance(step, Expire):
        left = left.filter(is_in_time)
    return in_order_of_keys(pa.concat_tables([left, new]))


def store_watermarks(files: Files, step: CleanStep, new: pa.Table, beaten: pa.ChunkedArray, path: str) -> str | None:
    """The file of a log's watermarks after a pass: that of the step if they are the same, a new one, or none.

    Arguments as for ``watermarks_after``; ``path`` is where a new file may be written.

    Raises:
        InputGone: the step's own file is gone.
    """
    before = read_watermarks(files, step)
    after = watermarks_after(before, new, beaten, step)
    if after.num_rows == 0:
        return None
    if after.equals(before):
        return step.watermarks_path
    write_watermarks(files, step, after, path)
    return path
