"""What is behind the errors of a catalog that know their cause, whichever catalog it is.

Of any other error its action alone tells: that files are to be mended, or a setting. Here nothing was cut off, and no
other program has changed anything, so that would send people to a copy of the storage, or to look for that program.
"""

from __future__ import annotations

from keptlog.table.catalogs.emptied import FILES_ARE_THERE, OWN_HAS_TOPICS
from keptlog.table.waiting.reaching import HALF_DONE, HELD

_AS_IT_SAYS = "do what it says"
_KNOWN = {
    HELD: ("a backup, or a program that hangs, has locked it", _AS_IT_SAYS),
    HALF_DONE: (
        "a writer died in a commit, and this user may not take back what is half done",
        f"{HALF_DONE}; put nothing back from a copy",
    ),
    FILES_ARE_THERE: (
        "its uri names another database than is meant, or it was emptied, or it is new and has another one's warehouse",
        _AS_IT_SAYS,
    ),
    OWN_HAS_TOPICS: ("another catalog is configured for a home that keeps topics in its own", _AS_IT_SAYS),
}


def known_cause(error: BaseException | None) -> tuple[str, str] | None:
    """Cause and remedy, if the error is one of these."""
    return next((each for words, each in _KNOWN.items() if words in str(error)), None)
