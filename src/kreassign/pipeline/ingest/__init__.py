"""From clusters, Prometheus and topics of metrics to rows of tables."""
