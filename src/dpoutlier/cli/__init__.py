"""The command line: each command reads, calls one function and prints."""
