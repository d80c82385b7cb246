"""Convert between Jackfield's messages and a provider's, for backends. A library, not a plugin.

- `history`: histories normalised for strict servers.
- `images`: image validation by content.
- `prompts`: prompts for image generation models.
- `embedding`: embedding in batches of bounded size.
- `known_models`: dated facts about models.
- `known_prices`: dated prices of models.
- `blocking`: the base class for backends with a blocking SDK.
"""
