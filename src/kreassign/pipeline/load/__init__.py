"""From samples to size and load per partition, and to what the planner reads."""
