"""The privacy budget of data sets, written down before it is spent."""
