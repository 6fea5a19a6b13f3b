"""What a test asks of a message: its kind and what it names, in order; its prose is in `wording.txt`."""

import re

import pytest

from heedmap.errors import InputError


def naming(*names):
    """Return a pattern of one line that names all of these, in this order and each as a whole.

    `line 4` is not in "line 42", and `0.1` is neither in "10.1" nor in "0.15" nor in "-0.1".
    """
    return r"\A(?=.*\Z)" + "".join(f".*?{_whole(str(name))}" for name in names)


def _whole(name):
    before = r"(?<!\w)" if re.match(r"\w", name) else ""
    before += r"(?<!\d\.)(?<![\s(]-)" if re.match(r"\d", name) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", name) else ""
    after += r"(?!\.\d)" if re.search(r"\d\Z", name) else ""
    return before + re.escape(name) + after


def refused(*names, kind=InputError):
    """A block that ends with an error of this kind whose one line names these, in this order."""
    return pytest.raises(kind, match=naming(*names))


def warned(*names, kind=UserWarning):
    """A block that warns, among other things, with one line that names these, in this order."""
    return pytest.warns(kind, match=naming(*names))


def stopped(done, *names):
    """Check that a command ended as bad input ends it: code 2, and a last line that names these."""
    assert done.code == 2, done.err
    assert re.search(naming(*names), done.err.splitlines()[-1]), done.err
