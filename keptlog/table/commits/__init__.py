"""How a change lands (``commit``), whatever it changes.

in which table       ``loading``, ``topics``; where its metadata lies: ``locations``; gone from its name: ``elsewhere``
still as planned     ``freshness``
files of a change that did not land    ``staged``; what was written beside commits of a topic that is gone:
                                       ``taken_back``
"""
