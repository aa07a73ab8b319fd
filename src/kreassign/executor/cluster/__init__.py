"""What a run asks of its cluster, and how the answers become values."""
