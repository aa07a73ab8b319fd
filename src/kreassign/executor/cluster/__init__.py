"""Queries and changes of a run, and how the cluster's answers become values."""
