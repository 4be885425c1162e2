"""A log goes into a topic of a broker: ``target`` looks at the topic or creates it, ``writer`` fills it.

writer          the way of a record, and the one writer of a pair
acceptance      which record the topic does not take, known before anything is sent
transactions    what makes it exactly once, and fences older writers
position        how far it has got, and how that is written down there; position_group asks for it
failures        what is told when a record, or a call, fails
waiting         a call of librdkafka, in bounded time
"""
