"""Train, audit, save and reopen runs."""
