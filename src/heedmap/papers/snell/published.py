"""What Snell et al. report.

[S3] are the slides "Understanding Attention Training via Output Relevance" (2020), [blog] the authors' blog.
Neither gives counts of copying runs.
"""

SLIDES, BLOG = "Snell et al.'s slides", "the authors' blog"
# How many trainings fail to copy, by sequences.
FAILURES = {
    "permutations": ("about half", SLIDES),
    "subsets": ("none", BLOG),
    "repeats": ("none", SLIDES),
}
