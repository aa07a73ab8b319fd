"""The parts of `kafka-topics`."""
