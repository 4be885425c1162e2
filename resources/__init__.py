"""Dagster configuration turned into library objects: the home, the Spark session, the clock.

Here belongs what reads configuration, the environment or the time, so that nothing below needs to. Decisions do not:
a resource opens things and hands them over.
"""
