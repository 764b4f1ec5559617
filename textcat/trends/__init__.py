"""Estimate the prevalence of topics by period from documents' scores, and find rates that have changed."""
