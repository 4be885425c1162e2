"""The log as Iceberg tables: one table a topic, one data file a segment, one commit a change.

The only package that imports pyiceberg. ``LogStore`` (``store``) is its front, and ``chosen`` the same for some topics
alone. All behind it is split by what it does:

    topics as a whole     ``topics``, ``alteration``, ``declaration``, ``deletion``
    records in            ``append``, ``arrival``; on their way: ``staging``, ``partition_writers``, ``staged``
    records out           ``read``, ``record_stream``, ``lost``
    what a log loses      ``swap`` (a clean), ``retain``, ``truncate``; where a clean fails: ``mark``, ``elsewhere``
    how a change lands    ``commit``, ``change``, ``freshness``, ``runs``, ``forward_in_time``; its files:
                          ``manifests``, ``live_files``, ``file_metrics``
    what a table says     ``state``, ``stored_json``, ``format``, ``schema``, ``columns``, ``logs``,
                          ``segment_metrics``, ``history``, ``references``; whether it is so: ``metadata_reading``,
                          ``lineage``, ``repair``
    who only looks        ``unopened``, ``unopened_files``, ``unopened_receipts``, ``bare``, ``avro``, ``table_look``,
                          ``live_segments``; remembered: ``cache``, ``standings``, ``locations``, ``metadata_files``
    registered readers    ``readers``, ``reader_register``
    erasures              ``erasures``, ``erasure_register``, ``erasure_look``, ``search``
    a purge               ``purge``, ``purge_preview``, ``purge_receipt``; whether there is one: ``quiet``,
                          ``purge_memory``, ``ahead``, ``live_there``, ``clock_guard``; what goes: ``expiry``,
                          ``expired``, ``watermark_expiry``, ``sweep``, ``own_folder``; how: ``journal``,
                          ``named_files``, ``removal``
    what holds bytes      ``superseded``, ``held``, ``held_versions``, ``hidden``, ``unowned``, ``topic_storage``
    receipts              ``drafts``, ``receipt_chain``, ``receipt_files``, ``sealed_receipts``,
                          ``receipt_verification``
    the catalog           ``catalog``, ``configuration``, ``rest``, ``conditional``, ``vending``, ``echo``, ``glue``,
                          ``one_at_a_time``, ``namespaces``; the embedded one: ``embedded``, ``database_file``,
                          ``home_folder``, ``home_location``
    storage               ``files``, ``local_files``, ``remote_files``, ``file_io``, ``durable_at_end``,
                          ``metadata_checksums``; S3: ``s3_client``, ``s3_answers``, ``s3_errors``,
                          ``s3_filesystem``, ``object_reads``, ``object_versions``
    waiting, and failing  ``patience``, ``side_by_side``, ``reach``, ``reaching``, ``database_answers``,
                          ``foreign_answers``
    doctor                ``topic_exam``; of a catalog: ``catalog_probe``, ``scratch``, ``probe_commits``,
                          ``probe_races``, ``probe_reading``, ``probe_tables``
"""

from keptlog.table.configuration import require_readable

require_readable()
