"""The command line: each command reads files, calls one function and prints."""
