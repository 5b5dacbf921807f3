"""What a fit released, frozen: the model, its plan, privacy statement and file. Never a reference row."""
