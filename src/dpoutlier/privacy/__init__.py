"""What a fit promises and what it costs: guarantee, sensitivity, charges, receipt. Numbers only."""
