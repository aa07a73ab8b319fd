"""A finished plan and all that is to be said about it."""
