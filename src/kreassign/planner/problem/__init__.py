"""What the planner is given: brokers, partitions, goals and limits, as frozen arrays."""
