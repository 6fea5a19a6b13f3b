"""The measures of importance that a map is compared with: their names in tables and in words."""

MEASURES = ("attention", "gradient", "leave_one_out", "integrated_gradients")
MEASURE_NAMES = {
    "gradient": "the gradient",
    "leave_one_out": "leave-one-out",
    "integrated_gradients": "integrated gradients",
}
"""All but attention, which is the map on trial."""
COMPLETENESS_TOLERANCE = 0.1
"""Log-odds by which integrated gradients may miss the difference that they add up to."""
