"""Values that another program has put into columns beside those of a topic: a clean writes a topic's columns alone.

Readers of the table see them as long as the file is live that has them. Whoever adopts such a file is told before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from keptlog.log.segment import Segment
from keptlog.storage.files import Files
from keptlog.storage.schema import SCHEMA
from keptlog.storage.segment_reader import open_segment


def values_beside(files: Files, segments: Iterable[Segment]) -> Mapping[str, int]:
    """Column to how many values these files have in it, if any, sorted.

    Raises:
        LogCorrupt: a file is damaged.
        OSError: it can't be read.
    """
    found: Counter[str] = Counter()
    for segment in segments:
        with open_segment(files, segment) as opened:
            for name in set(opened.schema.names) - set(SCHEMA.names):
                for number, records in enumerate(opened.row_groups):
                    found[name] += records - opened.null_count(number, name)
    return {name: count for name, count in sorted(found.items()) if count}
