"""The paper's experiments, and what they leave out: ``python -m experiments``. A user of the library like any other."""
