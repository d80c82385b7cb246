"""The face `acp`: agents inside editors."""
