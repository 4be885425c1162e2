"""Which segments of a judged run are rewritten together, and which stay as they are.

A segment in which nothing changes is kept: not one byte of it is written again. A changed one is rewritten. Two
complications, both to keep the number of files small without copying the whole log at each pass as Kafka does:

Neighbouring changed segments go into one output, which rolls at ``segment.bytes``. And an unchanged segment next to
changed ones joins them when it is small, at most half of ``segment.bytes`` and no larger than what is rewritten beside
it, so that the bytes copied for tidiness are never more than those that had to be copied anyway:

    before    [ 90 unchanged ][ 80 changed ][ 5 unchanged ][ 60 changed ][ 70 unchanged ]
    after     [ 90 kept      ][ one group: 80 + 5 + 60                 ][ 70 joins?  no: above half of 100 ]

A run of small dirty segments in which nothing changes is merged too: appends come in small files, and a cleaned log
is made of full segments.
"""

from __future__ import annotations

from collections.abc import Sequence

from keptlog.log.segment import Segment


def groups_to_rewrite(
    segments: Sequence[Segment], changed: Sequence[bool], dirty: Sequence[bool], segment_bytes: int
) -> list[range]:
    """Index ranges of ``segments`` to rewrite, each into one rolling output; what no range covers is kept.

    ``segments`` is a contiguous run in offset order; ``changed`` and ``dirty`` say of each whether a record of it goes
    or is stamped, and whether it is part of the dirty section.
    """
    small = [segment.size_bytes * 2 <= segment_bytes for segment in segments]
    rewritten = list(changed)
    for index in range(len(segments) - 1):
        if dirty[index] and dirty[index + 1] and small[index] and small[index + 1]:
            rewritten[index] = rewritten[index + 1] = True
    groups = _runs_of_true(rewritten)
    return _joined([_widened(group, segments, small) for group in groups])


def _runs_of_true(flags: Sequence[bool]) -> list[range]:
    runs: list[range] = []
    for index, flag in enumerate(flags):
        if flag and runs and runs[-1].stop == index:
            runs[-1] = range(runs[-1].start, index + 1)
        elif flag:
            runs.append(range(index, index + 1))
    return runs


def _widened(group: range, segments: Sequence[Segment], small: Sequence[bool]) -> range:
    """The group with its small unchanged neighbours, while they are no larger than what it had to rewrite itself."""
    budget_bytes = sum(segments[index].size_bytes for index in group)
    start, stop = group.start, group.stop
    while start > 0 and small[start - 1] and segments[start - 1].size_bytes <= budget_bytes:
        start -= 1
        budget_bytes -= segments[start].size_bytes
    while stop < len(segments) and small[stop] and segments[stop].size_bytes <= budget_bytes:
        budget_bytes -= segments[stop].size_bytes
        stop += 1
    return range(start, stop)


def _joined(groups: Sequence[range]) -> list[range]:
    """Groups that came to touch or overlap, as one."""
    joined: list[range] = []
    for group in groups:
        if joined and group.start <= joined[-1].stop:
            joined[-1] = range(joined[-1].start, max(joined[-1].stop, group.stop))
        else:
            joined.append(group)
    return joined
