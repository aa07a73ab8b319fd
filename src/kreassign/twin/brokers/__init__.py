"""The brokers and controllers of a twin as processes."""
