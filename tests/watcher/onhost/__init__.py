"""Each part: what it reads where the thing is, and what that means."""
