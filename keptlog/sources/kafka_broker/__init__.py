"""Reads topics of running Kafka brokers, through librdkafka.

``topics`` looks at them, and ``made_settings`` says what their settings mean; ``ranges`` cuts what is to be read into
parts, ``part`` reads one, ``signs`` say whether a broker is still there, and ``messages`` makes tables. ``remedies``
says what to do there about what can't be read.
"""
