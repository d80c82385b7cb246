"""Help for backends between Jackfield's messages and a provider's. A library, not a plugin.

- `history`: a history in the form that strict servers accept.
- `images`: images checked by their bytes.
- `prompts`: the prompt for a model that makes images.
- `embedding`: texts embedded in requests of a bounded size.
- `known_models`: facts about models, as dated data.
- `blocking`: the base class of backends whose SDK blocks.
"""
