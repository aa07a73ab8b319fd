"""The page of `kreassign web` and its HTTP API: another interface to the operations, beside the command line."""
