"""Segment files: how records lie in Parquet, and the one way by which bytes reach storage.

Appends, cleans and (later) sources all write the same files, so the format stands below both the table and Spark, and
knows neither. It imports pyarrow and the pure rules, nothing else.
"""
