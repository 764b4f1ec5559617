"""The HTTP side of the servers: limits, keys, routes, problems, logs, processes; independent of models and sessions."""
