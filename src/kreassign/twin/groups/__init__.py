"""Groups of the classic protocol: their members and the offsets that they committed."""
