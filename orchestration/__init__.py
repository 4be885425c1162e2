"""When logs are cleaned and what runs together: jobs and their ops, sensors, schedules, and the code location.

Here belongs what only Dagster can do: start, order, limit, retry, show. Rules do not: which log is due, and why, is
asked of ``keptlog.log``.
"""
