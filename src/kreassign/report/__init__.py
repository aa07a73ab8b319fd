"""Showing things: values in, text and pages out."""
