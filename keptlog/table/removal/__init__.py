"""What holds bytes that are not live, and how files go.

who holds them            ``superseded`` (snapshots), ``held`` (snapshots and storage), ``held_versions``, ``hidden``,
                          ``left_elsewhere``
what lies there           ``topic_storage``, ``own_folder``, ``metadata_elsewhere``; why nothing goes: ``refusal``
who else knows of it      ``ahead`` (a copy of a lake, or one put back), by ``known_states``; what it may need:
                          ``spared``
what goes                 ``expiry`` (snapshots), ``ref_retention`` (tags and branches); written down before:
                          ``journal``, ``named_files``; whose a journal is: ``own_journals``
how it goes, and is told  ``removal``, ``drafts`` (receipts that are not sealed yet)
a whole topic             ``deletion``, ``topic_deletion`` (what became of it), ``ended_erasures`` (what ends with it);
                          its table, or what is wrong with that: ``topic_table``
erasures                  ``erasure_register``, ``erasure_look``; where a key lies: ``search``, ``own_json``,
                          ``summary_bounds``
"""
