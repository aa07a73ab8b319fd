"""The sub-commands of `kreassign`; `cli/main.py` imports each on use."""
