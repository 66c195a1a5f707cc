"""Sweeps: many runs of the study that differ in a few parameters, on Dask, into one tidy table."""
