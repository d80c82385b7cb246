"""OpenAI's models on Azure, as a Jackfield backend."""
