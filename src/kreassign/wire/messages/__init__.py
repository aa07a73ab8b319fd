"""Message definitions that kafka-python lacks: KIP-179's, those of ZooKeeper mode, and what Kafka 4 added."""
