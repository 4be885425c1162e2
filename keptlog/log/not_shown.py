"""What is told of topics that brokers may have, or not, where nobody has named them."""

from __future__ import annotations

from collections.abc import Sequence

from keptlog.log.words.counted import some_of

_NAMES_IN_LINE = 3


def why_not_shown(
    topics: Sequence[str], stored: str, bootstrap: str, *, is_asked: bool = True, is_hidden: bool = False
) -> str:
    """Why topics that remember an address are not read at another one, if nobody has named them."""
    why = f"nothing shows that {bootstrap} has the same" if is_asked else f"{bootstrap} can't be asked for them now"
    granted = ""
    if is_hidden:
        why, granted = f"{why}, as the user may not describe it there", ", once DESCRIBE is granted there,"
    return (
        f"{some_of(topics, _NAMES_IN_LINE)} left out: last at {stored}, and {why}. What still is at "
        f"{stored} is read there without --bootstrap; what {bootstrap} has now{granted} is to be named "
        "(--topic, and --into if it has another name here)"
    )
