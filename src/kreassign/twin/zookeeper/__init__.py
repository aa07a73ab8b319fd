"""ZooKeeper mode of the twin: its controller, the znodes that it writes, and its requests to brokers."""
