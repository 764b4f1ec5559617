"""Report the quality of a model as one HTML file, topic by topic; draw pictures for notebooks and papers."""
