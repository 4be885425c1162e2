"""Who must act, and how, so that what holds bytes that are not live lets go: by the kinds of ``keptlog.log.holder``."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote

ENDS, ENDED = "ends", "ended"
"""Of a tag or a branch with a retention of its own: while that lasts, and when it is over."""
_DROP_IT = (
    "drop the {kind}, in Spark SQL ALTER TABLE <catalog>.keptlog.`{topic}` DROP {word} `{name}`, or in PyIceberg "
    "table.manage_snapshots().remove_{kind}({name!r}).commit()"
)
_DROP = _DROP_IT + ", or agree that what it shows stays; after that {purge} deletes it"
COMMITTED_AHEAD = (
    "replaced at {since}, which is still to come: the clock of that commit was ahead, so nobody can tell since when "
    "that is kept, and no purge deletes it before; set that clock right, and once no run and no reader is at work: "
)
_NO_RECORDS = "keptlog puts names and numbers there, no keys and no values; "
_SWEEP = "{purge} deletes what is older than the grace"
_REMEDIES = {
    ENDS: (
        "its retention ends then, and {purge} drops the {kind} and deletes what it keeps; to have that gone before, "
        + _DROP_IT
    ),
    ENDED: "its retention is over, and {purge} drops the {kind} and deletes what it keeps",
    "tag": _DROP,
    "branch": _DROP,
    "retired": "{purge} deletes what was replaced file.delete.delay.ms ago",
    "staged": _SWEEP,
    "orphan": _SWEEP,
    "post-dated": (
        "its time is still to come, so nobody can tell how old it is, and no purge deletes it; if no run is under way, "
        "delete it, or give it the time of now (touch), and {purge} deletes it after the grace; see to "
        "the clock of whoever wrote it"
    ),
    "watermarks": _SWEEP,
    "journal": (
        "{purge} finishes them, and sets aside that of a deletion that was taken back; what lies in "
        "receipts/unreadable is yours to delete"
    ),
    "elsewhere": (
        "no purge deletes anything there: delete by hand what nobody needs, but nothing in a folder of another topic, "
        "which deletes it itself; {purge} names it, and a receipt does once it is gone"
    ),
    "copied state": (
        "that metadata file has what one in the history of this catalog has, so another home may have the topic under "
        "its name, and no purge deletes what it shows; if no other home has it, move that file away, to where nothing "
        "of this topic lies; after that {purge} deletes what it shows"
    ),
    "commit ahead": (
        "that metadata file is one commit ahead of this catalog, so it may have landed in another one, and no purge "
        "deletes what it refers to before the next commit here; if no other home goes on with this storage, wait for "
        "that commit, or move the file away, to where nothing of this topic lies; after that {purge} deletes it"
    ),
    "statistics": (
        "let them write no bounds of key, value and headers; a manifest goes with the next clean that touches it, a "
        "file of statistics goes in a purge with its snapshot, or at once, if it is of columns, with PyIceberg's "
        "table.update_statistics().remove_statistics(SNAPSHOT).commit()"
    ),
    "metadata": _NO_RECORDS + "later commits and purges delete them",
    "cache": _NO_RECORDS + "the next look writes them anew, and the folder cache may be deleted at any time",
    "object version": ("somebody deleted the file and not its versions; {purge} deletes what is older than the grace"),
    "replaced version": (
        "somebody wrote the file again; what was there before goes with the file, or by its version id, which whoever "
        "manages the bucket deletes"
    ),
    "live segment": "they go with that segment",
    "delete marker": "it has no bytes, and goes with its file",
    "object lock": (
        "nobody can delete it before that, but who may bypass governance retention; after that {purge} deletes it"
    ),
    "legal hold": ("whoever put it on must take it off (s3:PutObjectLegalHold); after that {purge} deletes it"),
    "running spark": "it may be in use, and goes when its process ends",
    "spark": "its process is gone, and nobody comes back for it: rm -r {path}",
}


def remedy(what: str, words: Mapping[str, str], no_purge: str) -> str:
    """What to do about a kind of holder, or one that ``ENDS``; ``no_purge`` says why no purge would do anything."""
    told = _REMEDIES[what].format(**words, word=words["kind"].upper(), path=quote(words["name"]))
    # Nobody is to be sent to a command that refuses.
    return f"{no_purge}; after that {told}" if no_purge and words["purge"] in told else told
