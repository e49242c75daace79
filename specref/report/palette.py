"""The colours of plots and pictures, defined once: colour-blind readers can tell them apart.

Okabe and Ito 2008, "Color Universal Design". Next to these, greys for what is no series.
"""

BLACK = "#000000"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
YELLOW = "#F0E442"
BLUE = "#0072B2"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
OKABE_ITO = (BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILLION, PURPLE)

GREY = "#6E6E6E"
"""Lines to compare with, and what is said of them."""
PALE = "#999999"
"""Areas behind others."""
GRID = "#E4E4E4"
