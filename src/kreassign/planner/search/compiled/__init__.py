"""Inner loops in machine code: all of the search that the compiler sees, and the arrays that it works on."""
