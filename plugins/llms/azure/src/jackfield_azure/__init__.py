"""OpenAI's models at Azure, as a backend of Jackfield."""
