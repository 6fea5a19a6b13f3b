"""Timings: ratios against the plain loop, in one process."""
