"""The sub-commands of `kreassign`, one module each; imported by `cli/main.py` when they are used."""
