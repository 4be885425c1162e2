"""What is done to topics from end to end: observe, plan, work, commit.

passes            ``clean``, ``retain``, ``purge``, ``drop``, ``repair``, ``apply`` (topics as code), ``restore`` and
``restore_position``, ``restore_to_file``; one log, leg or topic at a time: ``apart``, ``rewrites``, ``in_legs``,
``landing``; failed logs: ``marked``
which logs        ``names``
how they stand    ``observer`` (the one way to look), ``observable``, ``judging``, ``stores_asked``, ``standings``,
                  ``stored_files``
what is checked   ``verify_pass``, ``verify``, ``segment_content``, ``check``, ``holders``
what is adopted   ``columns_beside``, ``undone_erasures``
readers, proofs   ``readers``, ``reader_position``, ``receipts``
who is told       ``watch`` (notify)

Two folders use these, and imports only go down:

doctor            what is wrong with a home, a catalog, this machine
erasures          keys that are to be gone, from the request to the proof
"""
