"""What the controller tells brokers in ZooKeeper mode: from steps to messages, and to what brokers learn of them."""
