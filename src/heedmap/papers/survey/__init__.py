"""The open questions of the survey of the debate: who needs attention, and whose attention is fooled."""
