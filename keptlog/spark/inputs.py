"""Opens the segments that a step was planned from; one that is gone means that the plan is stale."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pyarrow.parquet as pq

from keptlog.errors import StalePlan
from keptlog.log.plan import Step
from keptlog.log.segment import Segment
from keptlog.storage.files import Files
from keptlog.storage.segment_reader import open_segment


@contextmanager
def open_input(files: Files, step: Step, segment: Segment) -> Iterator[pq.ParquetFile]:
    """An input of a step, open.

    Raises:
        StalePlan: the file is gone.
    """
    with ExitStack() as opened:
        try:
            parquet = opened.enter_context(open_segment(files, segment))
        except FileNotFoundError as error:
            raise StalePlan(
                f"{step.topic_partition}: segment {segment.path} was replaced by another commit and purged since this "
                "clean was planned; nothing was committed, plan again"
            ) from error
        yield parquet
