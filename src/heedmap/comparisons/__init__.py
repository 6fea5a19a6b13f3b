"""Runs side by side: what differs in their settings, their answers and their maps of the same texts."""
