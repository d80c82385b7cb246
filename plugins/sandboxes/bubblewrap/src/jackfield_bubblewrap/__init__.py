"""Linux sandboxes for programs: bubblewrap, with Landlock as a fallback. Neither needs a daemon or root."""
