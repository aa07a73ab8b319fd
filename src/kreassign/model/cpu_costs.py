"""What bytes cost a broker of its CPU, in proportion to each other. Kafka does not measure CPU per partition.

The shares are what Cruise Control ships for its linear model: of the CPU of a broker that takes as many bytes in as a
leader as it sends and as it copies as a follower.
"""

CPU_PER_WRITE = 0.7
CPU_PER_READ = 0.15
CPU_PER_COPY = 0.15
