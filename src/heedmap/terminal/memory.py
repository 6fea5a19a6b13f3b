"""Refuse a limit of virtual memory in which torch cannot be loaded: its threads would wait or abort."""

from heedmap.errors import InputError

NEEDED = 3.0  # GB; report, the largest of the small commands, takes 2.5


def check_memory(needed: float) -> None:
    """Check that the limit of virtual memory allows this process so many GB.

    Raises:
        InputError: its limit is lower.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < needed * 1e9:
        raise InputError(
            f"expected a limit of virtual memory of {needed:g} GB at least, got {limit / 1e9:.2g} GB; raise it "
            "(ulimit -v)"
        )
