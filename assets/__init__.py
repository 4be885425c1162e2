"""The dirty and clean sections of topic-partitions as Dagster assets, and the checks that watch them.

Here belongs what Dagster calls an asset and how it is described: keys, partitions, metadata, checks. How a log is
cleaned does not: an asset calls the library in ``keptlog`` and reports what came back. When it runs is said in
``orchestration``.
"""
