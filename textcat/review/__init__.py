"""Choose what people see of a tagged archive, keep what they say, and count how often automatic tags are right."""
