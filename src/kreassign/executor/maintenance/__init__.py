"""Maintenance of brokers: the record of it, and the next step on the way in and out."""
