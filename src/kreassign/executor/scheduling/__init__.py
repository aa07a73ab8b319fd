"""Pacing: which of the waiting moves start now, and what the others wait for."""
