"""The topics as Dagster shows them: per topic a dirty section that is observed and a clean section that is made.

What is done to a log stands in ``keptlog``; here it gets its names, its numbers and its checks.
"""
