"""What is told of logs, and to whom; all of it follows from what was looked at, and nothing is looked at here.

to people                 ``explain`` (why a log is due or not), ``history`` (what each pass did), ``problem``;
                          ``early_end`` (a clean whose offset map was full)
who alters a topic        ``altered`` (which records go from then on)
how logs stand            ``standing``, ``topic_standing``, ``health`` (all of them in a few numbers)
to Kafka's boards         ``metrics``; to Prometheus: ``gauges``, ``exposition``
by notify                 ``conditions``, ``open_transaction`` (what waits at a broker behind one), ``silent_sensors``
by doctor                 ``examination``, ``stored_files``, ``erasure_step`` (what brings erasures on);
                          ``shut_folders`` (in which another user may write)
"""
