"""The only code that sees reference rows: rows in, a model of noisy counts out.

``PROOF.md`` beside this file is its proof; the code carries the marks (P1), (P2), ... that the proof cites.
"""
