"""The rules of the log, pure: no clock, no storage, no table, no Spark.

Read in this order: ``record``, ``segment``, ``config`` (what there is), ``roll``, ``sections``, ``selection`` (which
log is due and how far), ``verdict``, ``plan``, ``groups``, ``result`` (what a clean does and what it must have done).
``reference`` tells the same in the plainest way and is what all of it is tested against. Retention by time and size
will be the next module here.
"""
