"""Input of the planner: brokers, partitions, goals and limits, as frozen arrays."""
