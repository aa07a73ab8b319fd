"""Turn raw cluster data into the tables that the planner reads and anyone can open.

Imports nothing here: only the commands that use PySpark and pyarrow pay for loading them.
"""
