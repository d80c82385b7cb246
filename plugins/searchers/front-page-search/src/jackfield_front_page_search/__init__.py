"""Find the beginnings of documents."""
