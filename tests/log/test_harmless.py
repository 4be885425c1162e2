"""What another program wrote can be printed among our lines: it ends none, and changes nothing around it."""

from __future__ import annotations

import pytest

from keptlog.log.words.harmless import harmless


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders-0", "orders-0"),
        ("bad\nodd", "bad\\nodd"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("abc\u202edef", "abc\\u202edef"),
        ("\x9b2J", "\\x9b2J"),
        ("half \udcff", "half \\udcff"),
        ("Größe 顧客 👩\u200d💻", "Größe 顧客 👩\u200d💻"),
    ],
)
def test_only_what_controls_the_terminal_or_the_line_is_shown_otherwise(text: str, shown: str) -> None:
    assert harmless(text) == shown
