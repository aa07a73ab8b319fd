"""Bytes of the Kafka protocol: the only home of kafka-python's message classes. No input or output."""
