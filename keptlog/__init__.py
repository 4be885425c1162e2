"""keptlog: Kafka's log compaction for keyed changelog topics on a data lake.

Start with ARCHITECTURE.md; the rules are in ``keptlog.log``, the words in CONTEXT.md.
"""

__version__ = "0.1.0"
