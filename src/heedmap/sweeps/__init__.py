"""Sweeps: every combination of data, models, views and seeds, trained, audited and put on one page."""
