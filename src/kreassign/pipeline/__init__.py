"""From raw cluster data to what the planner reads, in tables that anyone can open.

Nothing is imported here: PySpark and pyarrow are paid for only by the commands that use them.
"""
