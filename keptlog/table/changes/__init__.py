"""What changes a topic. Each is one commit: it lands whole, or not at all.

records in            ``append``, ``arrival``; on their way: ``staging``, ``partition_writers``
what a log loses      ``swap`` (a clean), ``retain``, ``truncate``; where a clean fails: ``mark``
why none come in      ``stopped``
what a topic says     ``alteration``, ``declaration``, ``erasures``, ``reader_register``
put right again       ``repair`` (``foreign_files`` tells what goes), ``notes``; after a lost catalog: ``registration``
"""
