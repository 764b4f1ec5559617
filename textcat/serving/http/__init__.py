"""The transport: limits, keys, routes, problems, logs and processes. Nothing here knows models or sessions."""
