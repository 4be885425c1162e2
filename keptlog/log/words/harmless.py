r"""Text that another program may have written, such as a table's name, as it can be printed among ours.

A line break in it would begin a line that we never wrote, an escape would colour or overwrite what stands there, and
a mark of direction would turn what follows it round. They are shown as Python writes them: ``\n``, ``\x1b``.
"""

from __future__ import annotations

import re

_HARMFUL = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")
"""What controls a terminal, ends a line or sets the direction of text; halves of characters, which can't be sent."""


def harmless(text: str) -> str:
    """The text, in one line that changes nothing around it."""
    return _HARMFUL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
