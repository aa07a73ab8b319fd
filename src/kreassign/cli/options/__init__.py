"""Options shared by several commands, each group as one value."""
