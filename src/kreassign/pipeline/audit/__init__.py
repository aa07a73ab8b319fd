"""What runs promised against what happened, and whether records are still the same."""
