"""Replication: how replicas are copied, fall behind and catch up, in virtual time."""
