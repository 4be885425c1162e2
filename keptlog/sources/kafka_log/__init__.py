"""Kafka's own log directories, read without a broker: what ``log.dirs`` of a broker, or a backup of it, holds.

    log_directories(path)      the logs in it, each with what the broker noted about it            ``directory``
    segments_to_read(folder)   the files of one log that count, as a broker's start would find     ``segments``
    scan_log(segments)         one pass over the batches: what is aborted, where the log ends      ``transactions``
    read_segment(...)          one segment's committed records as tables, offsets kept             ``reader``

The last step knows nothing but its segment and what the pass before it found, so segments can be read by many ``tasks``
at once. The bytes themselves are understood in four places: ``batches`` walks from batch to batch of an ``open_file``
and tells good from broken, ``compression`` knows the codecs, ``record_batch`` the records of format v2 and
``message_set`` those of the formats v0 and v1, which no broker writes any more and many directories still hold.
``first_record`` helps to search for a batch, and ``columns`` makes tables of what is found.

Nothing is ever written to such a directory: what a broker's start would rename or delete is only overlooked.
"""
