"""Dagster configuration to library objects: the log store, the Spark session, the clock.

What differs between a laptop, a test and production stands here, and so do wall clock and process state. Nothing is
opened when a module is imported or a code location loads a resource; each is made when a run or a tick first asks.
"""
