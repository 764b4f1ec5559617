"""The HTTP side of the servers: limits, keys, routes, problems, logs, processes; it knows no models or sessions."""
