"""Teach a topic on an unlabelled archive by active learning: ask about documents, record answers, rank again."""
