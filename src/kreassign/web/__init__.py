"""The page of `kreassign web`, and the HTTP API behind it: another view of the operations, beside the command line."""
