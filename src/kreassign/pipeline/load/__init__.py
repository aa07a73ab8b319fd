"""Turn samples into size and load per partition, and into the planner's input."""
