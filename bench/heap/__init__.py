"""The first kernel of this project, kept to be compared with: a heap of rank vectors, and noise cell by cell.

Slower and simpler than the one in use. Its results are the same, bit for bit, which the tests use where the definition over all
cells would take too long.
"""
