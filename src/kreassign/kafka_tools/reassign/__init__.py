"""What `kafka-reassign-partitions` is made of: arguments, texts, and one module per action."""
