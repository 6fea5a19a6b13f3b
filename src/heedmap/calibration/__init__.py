"""Planted models, whose answer is known, and how often each reading is wrong about them."""
