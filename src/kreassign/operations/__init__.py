"""Every use case as a call: values and ports in, values and progress out. Prints nothing, parses nothing.

Functions that read or write item by item (`collect`, `compact_tables`, `watch`) yield each. Those that change a cluster
(`run`, `resume`, `rollback`, and likewise `rehearse`) return their result at the end, and pass their progress to a
callable meanwhile: an abandoned generator would leave moves without guards and throttles without an end.

The command line parses, calls these and shows their results; `kreassign/__init__.py` offers them to programs.
"""
