"""Independent check of a plan: legality, evaluation, bounds. Imports nothing from the search."""
