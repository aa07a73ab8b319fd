"""The sub-commands of `kreassign`; imported by `cli/main.py` when they are used."""
