"""A person teaches a topic on an archive without labels: documents are asked, answered and ranked anew."""
