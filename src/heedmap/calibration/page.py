"""x"""

FIGURES = "calibration"
