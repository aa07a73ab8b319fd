"""What `kafka-leader-election` and `kafka-preferred-replica-election` have in common, and their options."""
