"""The only code that sees reference rows. ``PROOF.md`` beside this file covers it, citing the marks (P1), (P2), ..."""
