"""Published experiments, run again: one module a paper, its numbers beside ours."""
