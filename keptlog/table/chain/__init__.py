"""The chain of receipts of a home: each says what is gone, and is sealed behind the one before.

the chain           ``receipt_chain``; its files: ``receipt_files``
who reads it        ``sealed_receipts``, ``unopened_receipts`` (without the catalog)
                    ``sealed_deletions`` (what it has of a deletion that goes on)
whether it holds    ``receipt_verification``
"""
