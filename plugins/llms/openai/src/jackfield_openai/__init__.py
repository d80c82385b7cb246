"""OpenAI, and every server that speaks Chat Completions, as a Jackfield backend."""
