"""Why a point scores as it does: points and noisy counts in, contributions and a picture out."""
