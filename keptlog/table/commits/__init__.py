"""How a change lands (``commit``), whatever it changes.

in which table       ``loading``, ``topics``; where its metadata lies: ``locations``
still as planned     ``freshness``
files of a change that did not land    ``staged``
"""
