"""Where the metadata log lives."""
