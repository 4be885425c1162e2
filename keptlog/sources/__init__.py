"""What brings records in, in its own order: as ``NewRecord``, or as tables where they keep their offsets.

A source knows nothing of the table.
"""
