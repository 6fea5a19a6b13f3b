"""The questions of an audit, one per file: table, findings, cost, and what the report shows of it."""
