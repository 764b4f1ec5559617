"""The experiments of the MICRA paper: Tsampouka and Shawe-Taylor, ICML 2007."""

from textcat.papers import micra_margins, micra_updates

EXPERIMENTS = (*micra_updates.EXPERIMENTS, *micra_margins.EXPERIMENTS)
