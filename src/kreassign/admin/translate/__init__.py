"""Convert between model and messages: each function makes the `Call` for one API; one module per subject. Pure."""
