"""Expressions that every engine runs, by narwhals: the value, the position and the cells of a row."""
