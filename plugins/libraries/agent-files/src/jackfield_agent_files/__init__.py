"""Load agents and other settings from files, and find the effects that need consent. A library, not a plugin.

- `files`: agents defined in YAML, TOML or JSON files.
- `tables`: bounded parsers for those formats.
- `templates`: variables in an agent file's texts.
- `effects`: a file's effects that need the user's consent.
"""
