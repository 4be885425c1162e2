"""How a change lands (``commit``), whatever it changes.

in which table       ``loading``, ``topics``; where its metadata lies: ``locations``; gone from its name: ``elsewhere``
still as planned     ``freshness``; what else must be true of it: ``guarded``
files of a change that did not land    ``staged``; what was written beside commits of a topic that is gone:
                                       ``taken_back``
"""
