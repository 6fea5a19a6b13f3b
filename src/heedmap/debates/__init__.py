"""The whole debate on a user's own texts: every paper's questions, the time first, one page at the end."""
