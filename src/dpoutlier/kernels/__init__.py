"""Compiled kernels. They see integers and arrays, and import nothing but each other."""
