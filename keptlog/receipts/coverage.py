"""What no receipt covers, in words that stand in each of them (ADR 36).

A receipt tells what was deleted below a topic's location, and what was looked through there. Whoever reads it years
later, and knows nothing of keptlog, might take it for more. So it says itself where it ends.
"""

from __future__ import annotations

NOT_COVERED = (
    "the broker that the records came from, and its replicas",
    "replicas of the bucket or disk, in other regions or on other machines",
    "what other programs have put, or left, outside of the topic's folder, and its table names no more",
    "what a run stages later that had read the records before they were deleted: no commit takes it",
    "what a killed Spark has left in its temporary folders, on the machines where it worked",
    "backups and snapshots of the storage, of disks or of machines",
    "what readers have copied: caches, tables, files and systems that were fed from this topic",
    "other topics that hold the same records",
)
