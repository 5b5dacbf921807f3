"""What was released, frozen: the model, the plan it followed, its privacy statement and its file. Never a reference row."""
