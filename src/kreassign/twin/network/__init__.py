"""Connections to a twin: in process and over TCP, with its security and its faults."""
