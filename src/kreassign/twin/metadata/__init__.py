"""The metadata log: its records, and the state of the cluster that they add up to."""
