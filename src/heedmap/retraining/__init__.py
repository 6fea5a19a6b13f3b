"""Train the variants that experiments ask for, and keep their outcomes."""
