"""The log as Iceberg tables: one table a topic, one data file a segment, one commit a change.

The only package that imports pyiceberg. ``LogStore`` is its front; all behind it is split by what it does: ``topics``,
``append``, ``swap``, ``read``, ``purge``, each on top of ``live_files`` (what a snapshot holds) and ``commit`` (how a
change lands, once and whole, or not at all).
"""

from keptlog.table.configuration import require_readable

require_readable()
