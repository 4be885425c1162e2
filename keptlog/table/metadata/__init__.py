"""What a topic's table says, and how it is written: Iceberg's metadata, and what of ours stands in it.

the table             ``schema``, ``columns``, ``references``, ``metadata_files``, ``metadata_reading``,
``metadata_json``, ``loaded``, ``plain_location``
what it remembers     ``state``, ``reached``, ``partitions``, ``prefixes``, ``format``, ``runs``, ``history``,
``adoption_doubt``; as JSON: ``stored_json``
its segments          ``segment_metrics``, ``live_segments``, ``logs``; for those who commit: ``file_metrics``,
``live_files``
a change              ``change``, ``manifests``, ``without_snapshot``
whether it is so      ``lineage``, ``newest_change``, ``forward_in_time``, ``usable_properties``
"""
