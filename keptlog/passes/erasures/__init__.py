"""Keys that are to be gone from topics by a time, from the request to the proof; the rules: ``keptlog.log.erasures``.

asked for         ``erase`` (some topics), ``erase_topic`` (one commit), ``asked_before``; what keys: ``key_text``
kept of it        ``erasure_request`` (as it is stored), ``ended_erasures``
how far it is     ``erase_look``; where keys lie: ``key_places``, ``kept_records``
proved            ``erase_verify``, ``left_files`` (what keeps one open), ``erasure_receipt``
in no topic       ``lost_topics`` (another program dropped the table, and left the files)
"""
