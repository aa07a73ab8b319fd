"""Outcome of runs, read from their journals and from the cluster."""
