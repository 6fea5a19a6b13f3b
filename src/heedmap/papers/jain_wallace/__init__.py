"""Jain & Wallace, "Attention is not Explanation" (2019), run again: their grid, their numbers beside ours."""
