"""What a twin begins with: scenarios, snapshots, releases of Kafka."""
