"""What ``keptlog doctor`` and a catalog's probes ask: of one topic, of folders that no topic owns, of a catalog.

a topic                ``topic_exam``
folders without one    ``unowned``; what topics need there: ``needed_there``
folders of another     ``shut_folders``, of topics and of the chain of receipts
a catalog              ``catalog_probe``, in a place of its own (``scratch``): ``probe_tables``, ``probe_commits``,
``probe_races``, ``probe_reading``
"""
