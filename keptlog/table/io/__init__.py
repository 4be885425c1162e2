"""Storage by path, as Iceberg's FileIO: ``files`` is the door, for driver and tasks alike.

where files lie        ``local_files``, ``remote_files``, ``addresses``, ``durable_at_end`` (waits for the disk once
                       a task); whether they may be changed: ``read_only``
PyIceberg's door       ``file_io``; its files: ``avro``, ``metadata_checksums``
S3                     ``s3_client``, ``s3_answers``, ``s3_errors``, ``s3_filesystem``; objects: ``object_reads``,
                       ``object_versions``
boto3                  ``aws_client``, which asks ``aws_answers``, ``aws_credentials`` and ``aws_sources``
whose credentials      ``vending``; renewed by somebody: ``aws_credentials``; of a profile: ``aws_profile``; given by a
                       role, a process or a file with a token: ``aws_sources``
in little time         ``impatience``
"""
