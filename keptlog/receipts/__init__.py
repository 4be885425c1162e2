"""Receipts: what keptlog says that it has done, signed, each naming the one before it.

    receipt.py     a draft, a receipt, and the one way to write it as bytes
    signing.py     a key that signs, and the public half that tells whether it did
    ed25519.py     how cryptography does that
    key_files.py   where the keys lie, and who makes them
    coverage.py    what no receipt covers, in words
    chain.py       whether some files are a whole chain: names what is missing, damaged, swapped or of another key
    folder.py      the files of a folder that are taken for receipts

Whoever holds the files of a chain and a public key needs nothing else of keptlog: no home, no catalog, no network. So
nothing here imports what opens one. Where the chain of a home lies is the business of
``keptlog.table.chain.receipt_chain``.
"""
