"""The catalog that holds the topics, opened by ``catalog``.

whatever is configured    ``configuration``, ``loaded``, ``one_at_a_time``
the embedded one          ``embedded_catalog``, ``embedded``, ``database_file``, ``home_folder``, ``home_location``
a database                ``sql``
a home elsewhere          ``outlived_copy``
whether another shares    ``shared_warehouse``; whether it was emptied: ``emptied``
REST                      ``rest``, ``conditional``, ``foreign_answers``, ``echo``
Glue                      ``glue``
"""
