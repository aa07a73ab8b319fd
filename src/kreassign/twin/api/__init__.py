"""Answers of a node, as functions of the request: one function per Kafka API, one module per subject."""
