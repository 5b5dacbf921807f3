"""The noise: its exact law, where its bytes come from, how it is drawn."""
