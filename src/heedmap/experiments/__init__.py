"""One question a file; each gives a table with one row an instance."""
