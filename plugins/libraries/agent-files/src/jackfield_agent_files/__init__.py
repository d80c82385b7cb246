"""Agents and other settings in files, and the effects that need consent. A library, not a plugin.

- `files`: agents described by YAML, TOML or JSON files.
- `tables`: the files as tables.
- `templates`: variables in the texts of agent files.
- `effects`: the effects of a file that need the user's consent.
"""
