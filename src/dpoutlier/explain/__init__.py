"""Why a point scores as it does, and its picture. Reads released counts only."""
