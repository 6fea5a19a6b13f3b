"""Train, open, audit and keep runs."""
