"""Quality of a model → one HTML file that shows it topic by topic, and pictures for notebooks and papers."""
