"""Read recipes, which say how rankers are trained, from TOML files."""
