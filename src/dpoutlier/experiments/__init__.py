"""The paper's experiments, and what they leave out: ``dpoutlier reproduce``. A user of the library like any other."""
