"""The servers of a lake, each for as long as a block lasts, on loopback: for ``make demo-lake`` and for tests.

    with s3_server() as s3, postgres() as database, spark_cluster(workers=2) as cluster:
        catalog = {"type": "sql", "uri": database.uri(), "warehouse": s3.bucket("lake"), **s3.properties}
        …  open_home(…, catalog); KEPTLOG_SPARK_MASTER=cluster.master

    s3_server        moto, a process of its own; what it stores is in its memory
    postgres         Debian's or any other binaries, in a folder of its own
    rest_catalog     Iceberg's own REST catalog, from Maven
    spark_cluster    a standalone master and its workers, from the pyspark that is installed
    fault_proxy      between them and whoever uses them: counts, delays, refuses, loses answers

All of them are ``server_process`` and end with whoever started them, ``kill -9`` included. What is missing on this
machine is ``NotInstalled``: one line that says what to install.
"""
