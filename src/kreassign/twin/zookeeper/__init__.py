"""The twin in ZooKeeper mode: what its controller does otherwise, and what it leaves in ZooKeeper."""
