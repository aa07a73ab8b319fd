"""One module per Kafka API, named by its number: what a node answers, as a function of the request."""
