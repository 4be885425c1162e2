"""Segment files: how records lie in Parquet, and the one way by which bytes reach storage.

    schema.py           the columns of a segment, and records to and from them
    segment_reader.py   row group by row group, only the columns asked for
    segment_writer.py   a writer that rolls at a size, in bounded memory
    value_views.py      values as views, so that to filter copies none
    versions.py         the version of every record, and the latest of every key by it
    watermark_file.py   the watermarks of a log's deleted keys
    keys.py             keys looked up and grouped, however many bytes they have together
    key_hash.py         keys by their keyed hashes
    erasure_secret.py   the secret under which keys are hashed
    checksums.py        the checksums of a segment file, in its footer
    crc32.py            how each is computed
    files.py            the protocol ``Files``: open, create, delete, list
    read_ahead.py       small files, asked for before somebody comes to them
    throttle.py         files that bytes pass through no faster than allowed
    leftover.py         files that nobody will refer to, deleted
    object_version.py   what a versioned bucket keeps beside its objects
    damage.py           a file that is damaged, told from storage that does not answer
    refusal.py          what an object store refuses for good

Appends, ingests and cleans all write the same files, so the format stands below table, engine and sources, and knows
none of them. It imports pyarrow, numpy and the pure rules, and zlib-ng where that is installed, nothing else.
"""
