"""Monitoring of a run: metrics for Prometheus, messages for webhooks."""
