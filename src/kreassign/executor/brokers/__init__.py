"""Taking brokers out of service: what to do next, from what the cluster says. Pure, but for `readings`."""
