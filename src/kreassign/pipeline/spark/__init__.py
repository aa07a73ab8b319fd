"""The Spark session, and the same function on many values at once."""
