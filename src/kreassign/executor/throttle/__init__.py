"""The throttle of a run: its rates, the settings that it needs, and what was there before."""
