"""The client of a server: a model on another machine, with the methods of a loaded one. It never sees reference rows."""
