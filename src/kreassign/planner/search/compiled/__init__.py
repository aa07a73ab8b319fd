"""Inner loops in machine code: all compiled parts of the search, and the arrays that they work on."""
