"""Held-out questions about manuals, on which nothing was tuned, asked of the `assistant` itself.

They are for reporting only. Choosing a setting based on them would make them worthless.
"""
