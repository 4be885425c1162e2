"""Texts as Markdown that shows them as they are.

Dagster takes descriptions and tables for Markdown. A text of ours that names ``<catalog>``, or quotes a name with
backticks, would lose just that, and a command would be wrong when it is read.
"""

import re
from collections.abc import Callable, Sequence

from keptlog.log.words.iso_time import iso_time
from keptlog.log.words.shortened import shortened

_MARKS = re.compile(r"[\\`*<\[~|]|(?<![^\W_])_|_(?![^\W_])")
"""What Markdown may take for its own; an underscore inside of a word is none."""
_WORD = re.compile(r"\S*/\S*")
_NAME = re.compile(r"(?<=/)[^\s/]+\.(?:parquet|arrow|avro|json)\b")
"""The name of a file as a topic has them: segments, watermarks, manifests, and what says what is where."""
_WIDEST_NAME = 40
"""No browser breaks a name at its dots, and a topic may have 249 letters."""
_BEGIN = re.compile(r"^[^\w/.~$%]+|(?<![^,;:=({\[<'\"`])[('\"\[{<`]+")
"""What may stand before a path within a word; a bracket or quote behind a letter or a slash is of a folder's name."""
_FEWEST_FOLDERS = 3
"""A path with fewer slashes before the name is as short as the name."""
_SEGMENT = re.compile(r"(\d{20}-)\S+(?=\S{4}\.parquet)")
"""Of a segment's file, what is told: the offset of its first record and its last letters."""
SHOWN_AT_ONCE = 1000
"""A page shows a text of fewer characters without a click."""
_TIME = re.compile(r"(?<![^\s(])(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?Z")


def as_markdown(text: str) -> str:
    """The text on one line, with a backslash before each character that Markdown would take for its own."""
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))


def as_list(texts: Sequence[str]) -> str:
    """Each text on a line of its own; one alone needs no mark."""
    lines = [as_markdown(each) for each in texts]
    return "\n".join(lines if len(lines) == 1 else (f"* {line}" for line in lines))


def without_folders(text: str) -> str:
    """The text where one as wide as a path pushes all else out of the window; a file's name breaks at its hyphens."""
    return _WORD.sub(lambda word: _told(word[0], str), text)


def without_paths(text: str) -> str:
    """The text for a table: one as wide as a path leaves its other columns no room, and what is to be done no place.

    Of a segment's file its offset stays, and the end of its name, which tells it from another one at that offset.
    Verify, and the log of the run, have all.
    """
    return _WORD.sub(lambda word: _told(word[0], lambda name: _SEGMENT.sub(r"\1…", name)), text)


def _told(word: str, told: Callable[[str], str]) -> str:
    """A word without the folders of the files that it names, one after the other; each place in it is read once."""
    parts, end = [], 0
    for name in _NAME.finditer(word):
        above = word[end : name.start()]
        begin = max((found.end() for found in _BEGIN.finditer(above)), default=0)
        is_long = above.count("/", begin) >= _FEWEST_FOLDERS
        parts += [above[:begin], "…/" if is_long else above[begin:], told(name[0]) if is_long else name[0]]
        end = name.end()
    return "".join([*parts, word[end:]])


def name_cell(name: object, width: int = _WIDEST_NAME) -> str:
    """The name of a topic or a log where there is a link to all of it, or the page is its own."""
    return shortened(str(name), width)


def to_the_minute(text: str) -> str:
    """The text with its times as pages tell them."""
    return _TIME.sub(r"\1 \2 UTC", text)


def wide_table(columns: Sequence[str], rows: Sequence[Sequence[str]], more: str = "") -> str:
    """A table of more columns than the metadata of a page have room for: the page shows it in a window, on a click.

    In the page it would be cut off at the right, and so would all that stands below it in the same column.
    """
    lines = [columns, ["---"] * len(columns), *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return (f"{table}\n\n{more}" if more else table).ljust(SHOWN_AT_ONCE)


def minute_of(time_ms: int | None, otherwise: str) -> str:
    """A time to the minute."""
    return otherwise if time_ms is None else iso_time(time_ms)[:16].replace("T", " ")


def time_cell(time_ms: int | None, otherwise: str) -> str:
    """A time for a column that may be narrow: the date stands in one line, and the time of day in this or the next."""
    return " ".join(map(unbroken, minute_of(time_ms, "").split())) or otherwise


def unbroken(text: str) -> str:
    """The same to the eye, and no browser breaks it in two."""
    return text.replace("-", "\N{NON-BREAKING HYPHEN}").replace(" ", "\N{NO-BREAK SPACE}")
