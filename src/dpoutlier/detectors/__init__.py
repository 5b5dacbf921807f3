"""Detectors: scikit-learn's contract over plans and models. Translation only."""
