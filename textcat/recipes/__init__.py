"""Read recipes (TOML files of training settings)."""
