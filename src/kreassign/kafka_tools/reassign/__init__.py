"""The parts of `kafka-reassign-partitions`: options, requests, messages, and its actions."""
