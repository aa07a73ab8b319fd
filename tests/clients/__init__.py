"""Foreign clients, walked over a twin and over real Kafka call by call: `make test-clients`.

Each client has a program of its own, in its own language, that takes bootstrap servers and a topic, and prints what it
found step by step as lines of JSON. Here they are built, run on both clusters, and compared.
"""
