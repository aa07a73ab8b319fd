"""What a run tells other programs while it goes on: metrics for Prometheus, messages for webhooks."""
