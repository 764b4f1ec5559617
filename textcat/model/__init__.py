"""The trained thing, and its folder."""
