"""The independent check of a plan: legality, evaluation, bounds. Imports nothing of the search."""
