"""OpenAI, and every server that speaks Chat Completions, as a backend of Jackfield."""
