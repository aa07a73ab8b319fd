"""Reports: text and pages, rendered from values."""
