"""Questions about manuals that nothing was tuned on, asked of the `assistant` itself.

They are for reporting only. A setting that is chosen because of them makes them worthless.
"""
