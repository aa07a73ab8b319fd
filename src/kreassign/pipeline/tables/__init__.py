"""The tables: their schemas, and everything that reads, writes and compacts them."""
