"""Segment files: how records lie in Parquet, and the one way by which bytes reach storage.

    schema.py           the columns of a segment, and records to and from them
    segment_reader.py   row group by row group, only the columns asked for
    segment_writer.py   a writer that rolls at a size, in bounded memory
    value_views.py      values as views, so that to filter copies none
    versions.py         the version of every record, and the latest of every key by it
    watermark_file.py   the watermarks of a log's deleted keys
    crc32.py            the checksum of all that is written
    files.py            the protocol ``Files``: open, create, delete, list
    throttle.py         files that bytes pass through no faster than allowed

Appends, ingests and cleans all write the same files, so the format stands below table, engine and sources, and knows
none of them. It imports pyarrow, numpy and the pure rules, and zlib-ng where that is installed, nothing else.
"""
