"""The rules of the log, pure: no clock, no storage, no table, no Spark.

What there is: ``record``, ``segment``, ``config`` and ``broker``. Which log is due, and how far: ``roll``,
``sections``, ``selection``, ``uncleanable``. What a clean does: ``verdict``, ``strategy`` (which record is the latest),
``offset_map`` (where a pass ends), ``watermark``, and ``clean``, all of them together in memory. What is done to a log:
``plan``, ``groups``, ``result``; and ``retention``, which knows no keys. What is told of it: ``explain``, ``metrics``.

``reference`` tells the same in the plainest way and is what all of it is tested against.
"""
