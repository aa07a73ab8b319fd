"""Drop-in replacements of Kafka's tools: same options, texts, streams and exit codes."""
