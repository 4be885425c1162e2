"""A log goes into a topic of a broker: ``target`` looks at the topic or creates it, ``writer`` fills it."""
