"""The one error a user is meant to see."""


class InputError(ValueError):
    """Bad input: one line that says what was expected, what came and what to do.

    The command line prints it without a traceback and exits with code 2.
    """
