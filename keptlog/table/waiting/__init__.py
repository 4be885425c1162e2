"""Waiting for a catalog or a storage, and what its failure means.

how long        ``patience``, ``database_answers``, ``whole_answers``; several at once: ``side_by_side``;
                again: ``rest``
how it failed   ``reaching``, which asks ``reach`` once something has; SQLite's words: ``sqlite_failures``;
                a writer that has died: ``half_done``
what is sent    ``sendable``; and comes back: ``quoted``
"""
