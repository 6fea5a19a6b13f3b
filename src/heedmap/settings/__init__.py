"""The settings that a run depends on: every option, once, with its help. Unknown keys are errors."""
