"""Compiled loops: integers and arrays in and out. They import nothing but each other."""
