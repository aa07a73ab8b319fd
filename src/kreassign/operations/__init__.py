"""Every use case as a call: values and ports in, values and progress out. Prints nothing, parses nothing.

The command line parses, calls these and shows what they return; `kreassign/__init__.py` offers them to programs.
"""
