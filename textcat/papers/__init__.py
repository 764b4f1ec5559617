"""The seed papers' experiments: every table and figure as a run that stands beside the published figures."""
