"""Every use case as a call: values and ports in, values and progress out. Prints nothing, parses nothing.

What reads or writes item by item (`collect`, `compact_tables`, `watch`) yields each. What changes a cluster (`run`,
`resume`, `rollback`, and `rehearse` with it) returns its result when it is over, and hands its progress to a callable
meanwhile: a generator that nobody asks for more would leave moves without guards and throttles without an end.

The command line parses, calls these and shows what they return; `kreassign/__init__.py` offers them to programs.
"""
