"""`python -m heedmap` is the command `heedmap`."""

from heedmap.cli import main

if __name__ == "__main__":
    main()
