"""The log as Iceberg tables: one table a topic, one data file a segment, one commit a change.

The only package that imports pyiceberg. Its fronts are ``store``, which opens the catalog; ``chosen``, the same for
some topics alone; and ``unopened`` (with ``unopened_files``), for who only looks. What both take of a table is
``table_look``; a store's ``topic_memory`` keeps that as long as the topic is there. ``purge_preview`` is a purge that
deletes nothing, and ``registrar`` finds what a catalog that was lost no longer knows. A folder imports only folders
below its own:

    doctor       what doctor asks of topics, folders and catalogs
    (here)       the fronts
    purging      a purge of one topic
    changes      append, clean, retain, truncate, alter, repair: each is one commit
    chain        the chain of receipts
    commits      how a change lands
    removal      what holds bytes, and how files go
    reading      records, logs and registered readers
    catalogs     embedded, SQL, REST, Glue
    metadata     what a table says: schema, state, segments, manifests
    io           files, local and remote
    waiting      patience, and what failures mean
    namespaces   what catalog and namespaces are called (``namespaces``)
"""

from keptlog.table.catalogs.configuration import require_readable

require_readable()
