"""The face `openai`: agents for every client of OpenAI's APIs."""
