"""Components that keep their contract, and some that break it in one place each."""
