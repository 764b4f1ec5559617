"""The experiments of the PAUM paper: Li et al., "The Perceptron Algorithm with Uneven Margins", ICML 2002."""

from textcat.papers import paum_figure, paum_margins, paum_reuters, paum_usps

EXPERIMENTS = (
    *paum_usps.EXPERIMENTS,
    *paum_reuters.EXPERIMENTS,
    *paum_margins.EXPERIMENTS,
    *paum_figure.EXPERIMENTS,
)
