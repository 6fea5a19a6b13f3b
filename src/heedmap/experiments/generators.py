"""Make the random generators of the experiments: each is named, so that none depends on what others draw."""

import numpy as np


def named_generator(seed: int, name: str, *numbers: int) -> np.random.Generator:
    """Return the generator of a name, and of a text where its number is given.

    The name's bytes are part of the seed. A new name draws other numbers: all tables made with it change.
    """
    return np.random.default_rng([seed, *name.encode(), *numbers])
