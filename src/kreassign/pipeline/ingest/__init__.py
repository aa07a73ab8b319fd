"""Read clusters, Prometheus and topics of metrics into rows of tables."""
