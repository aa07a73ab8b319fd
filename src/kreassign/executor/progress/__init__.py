"""How far a run is, how fast it goes, and when it will end."""
