"""The plan of a fit and what the fit released, frozen: the model, its privacy statement and file. Never a reference row."""
