"""The files of one log that count: what a broker's start would find after it tidied up.

    00000000000000000000.log             a segment, named after its base offset
    00000000000000000120.log.swap        what a clean wrote, complete, on its way to take the place of older segments
    00000000000000000120.log.cleaned     what a clean was writing when it ended
    00000000000000000000.log.deleted     replaced or removed; its file goes later

A broker that was killed leaves such a mixture. It overlooks ``.deleted`` and ``.cleaned``. A ``.swap`` takes the place
of all segments from its own base offset to its end. But a ``.swap`` at or behind the first ``.cleaned`` belongs to a
step that was not complete, and goes: then the old segments are all still there. (Kafka: ``LogLoader``.)

A broker that finds an index and no segment of the same name deletes the index. Here it says that a segment is missing:
copies lose files more often than brokers die between two renames.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from keptlog.errors import LogCorrupt, StorageUnavailable
from keptlog.sources.kafka_log.batches import NO_END, Damage, LogSegment, batches
from keptlog.sources.kafka_log.open_file import unread

_NAME = re.compile(r"(\d{20})\.(\w+)(\.cleaned|\.swap|\.deleted)?")
_INDEXES = ("index", "timeindex")
"""Each segment has both."""


def segments_to_read(folder: Path) -> list[LogSegment]:
    """The segments of the log in a folder, in the order of their offsets.

    Raises:
        StorageUnavailable: the folder can't be listed.
    """
    with _listing(folder):
        return _ordered(_surviving(folder))


def lost_segment(folder: Path, segments: Iterable[LogSegment]) -> str | None:
    """What says that a segment is missing: an index that lies neither beside it nor where a swap took its place.

    Raises:
        StorageUnavailable: the folder can't be listed.
    """
    known = {segment.base_offset for segment in segments}
    with _listing(folder):
        alone = {base: path for base, path in _files(folder, _INDEXES, None) if base not in known}
        first, end = _span(dict(_files(folder, ["log"], ".swap")) if alone else {})
        alone = {base: path for base, path in alone.items() if not first <= base < end}
    if not alone:
        return None
    index = alone[min(alone)]
    return f"{index} lies there without {index.stem}.log, whose records are missing"


def why_torn(torn: Damage, position: int) -> str:
    """Why a log ends before its files do; and, for a reader at this position, what becomes of what that hides."""
    if torn.end_offset in {NO_END, torn.next_offset}:
        return "its last batch was not written whole"
    first, last = torn.next_offset, torn.end_offset - 1
    if position <= last:
        then = f"offsets {max(first, position)} to {last} come in with a copy that has them whole"
    else:
        then = f"offsets {first} to {last} count as here, as they are if an earlier copy had them whole"
    return f"since the rest of that segment is damaged, and {then}"


def why_unreadable(segment: LogSegment, damage: Damage) -> LogCorrupt | StorageUnavailable:
    """What stops a reader who may not skip a damage of this segment.

    A running broker's cleaner may have put its segment together with the next one since they were listed. Then there
    are offsets in it that it could not have, and nothing is damaged.
    """
    if segment.path.exists() and (
        segment.end_offset == NO_END or _has_segment(segment.path.parent, segment.end_offset)
    ):
        return damage.as_error()
    return StorageUnavailable(
        f"{segment.path}, or the segment behind it, was replaced while it was read, as a running broker does; try again"
    )


def _has_segment(folder: Path, base_offset: int) -> bool:
    return any((folder / f"{base_offset:020d}.log{suffix}").exists() for suffix in ("", ".swap"))


def end_written_ms(segments: Sequence[LogSegment]) -> int:
    """When the end of a log was written; in a copy, no later than the end was copied.

    The last of its segments, at least one, has the end. Others can have been copied later: a broker goes on writing
    behind the end meanwhile.

    Raises:
        StorageUnavailable: it can't be looked at.
    """
    last = segments[-1].path
    with _listing(last.parent):
        return last.stat().st_mtime_ns // 1_000_000


@contextmanager
def _listing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unread(f"{folder} can't be listed", error, "a running broker may have changed it") from error


def _surviving(folder: Path) -> dict[int, Path]:
    """Base offset to file."""
    by_suffix: dict[str | None, dict[int, Path]] = {None: {}, ".swap": {}, ".deleted": {}, ".cleaned": {}}
    first_cleaned = NO_END
    for path in folder.iterdir():
        match = _NAME.fullmatch(path.name)
        if match is None:
            continue
        base_offset, kind, suffix = int(match[1]), match[2], match[3]
        if suffix == ".cleaned":
            first_cleaned = min(first_cleaned, base_offset)
        if kind == "log":
            by_suffix[suffix][base_offset] = path
    swapped = {base: path for base, path in by_suffix[".swap"].items() if base < first_cleaned}
    return _without_replaced(by_suffix[None], swapped) | swapped


def _files(folder: Path, kinds: Collection[str], suffix: str | None) -> Iterator[tuple[int, Path]]:
    """With their base offsets."""
    for path in folder.iterdir():
        match = _NAME.fullmatch(path.name)
        if match and match[2] in kinds and match[3] == suffix:
            yield int(match[1]), path


def _without_replaced(plain: Mapping[int, Path], swapped: Mapping[int, Path]) -> dict[int, Path]:
    first, end = _span(swapped)
    return {base: path for base, path in plain.items() if not first <= base < end}


def _span(swapped: Mapping[int, Path]) -> tuple[int, int]:
    """The offsets [first, end) of which they are all that is left."""
    if not swapped:
        return 0, 0
    return min(swapped), max(_end_of(base, path) for base, path in swapped.items())


def _ordered(files: Mapping[int, Path]) -> list[LogSegment]:
    bases = sorted(files)
    sizes = [files[base].stat().st_size for base in bases]
    return [
        LogSegment(files[base], base, end, size, is_last=not any(sizes[index + 1 :]))
        for index, (base, end, size) in enumerate(zip(bases, _ends(bases), sizes, strict=True))
    ]


def _ends(bases: list[int]) -> Iterable[int]:
    return [*bases[1:], NO_END] if bases else []


def _end_of(base_offset: int, path: Path) -> int:
    """The offset after the last one in a file."""
    segment = LogSegment(path, base_offset, NO_END, path.stat().st_size, is_last=True)
    return max((each.last_offset + 1 for each in batches(segment) if not isinstance(each, Damage)), default=base_offset)
