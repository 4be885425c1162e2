"""What is done to topics from end to end: observe, plan, work, commit.

passes            ``clean``, ``retain``, ``purge``, ``drop``, ``repair``, ``apply`` (topics as code), ``restore``,
``restore_to_file``; one log, leg or topic at a time: ``apart``, ``in_legs``, ``landing``; logs that failed: ``marked``
which logs        ``names``
how they stand    ``observer`` (the one way to look), ``observable``, ``standings``, ``stored_files``
what is checked   ``verify_pass``, ``verify``, ``check``, ``holders``, ``this_machine``
erasures          ``erase``, ``erase_topic``, ``erase_look``, ``erase_verify``, ``erasure_request``,
``erasure_receipt``, ``ended_erasures``, ``kept_records``; keys: ``key_places``, ``key_text``
readers, proofs   ``readers``, ``receipts``
who is told       ``watch`` (notify); doctor: ``home_doctor``, ``home_patient``, ``proof_doctor``,
``catalog_doctor``
"""
