"""Drop-in replacements of the tools that come with Kafka: their options, texts, streams and exit codes."""
