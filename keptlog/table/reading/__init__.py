"""What is read of a topic without a change: its records, its logs, its registered readers.

records                ``read``, ``record_stream``; a file that is not there: ``lost``
registered readers     ``readers``; what those miss who are too slow: ``overruns``
a table by its files   ``bare``, without PyIceberg
put aside on a disk    ``cache``, ``standings``; whether the stores answer for which memory does: ``away``
"""
