"""What is promised and what it costs: the guarantee of a fit, and the receipt of a ledger. Numbers only."""
