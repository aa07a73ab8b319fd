"""What became of runs: read from their journals and from the cluster."""
