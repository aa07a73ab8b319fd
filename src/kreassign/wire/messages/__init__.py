"""Message definitions that Kafka never shipped, in the form of Kafka's own: see `kip_179.py`."""
