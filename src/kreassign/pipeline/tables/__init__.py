"""The tables: their schemas, and the code that reads, writes and compacts them."""
