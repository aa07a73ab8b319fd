"""Kafka's znodes about reassignments: paths, and text ↔ values. Nothing here connects to ZooKeeper."""
