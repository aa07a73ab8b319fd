"""The twin in ZooKeeper mode: its controller, what that writes to ZooKeeper, and what it sends to brokers."""
