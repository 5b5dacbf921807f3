"""The noise: its exact law, its random bytes and how it is drawn. A law in, integers out; no rows, no counts."""
