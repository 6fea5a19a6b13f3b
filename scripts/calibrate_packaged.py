"""Make the rates that come with heedmap: `python scripts/calibrate_packaged.py OUT [DATA ...]`."""

import sys

from heedmap.calibration.calibrate import calibrate
from heedmap.data.load import load

if __name__ == "__main__":
    out, *corpora = sys.argv[1:]
    calibrate(out, [load(path) for path in corpora])
