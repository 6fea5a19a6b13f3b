"""Shared by the commands: options, the progress bar, and output that is safe on any terminal."""
