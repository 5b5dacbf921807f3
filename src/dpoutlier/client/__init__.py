"""A model on a server, with the methods of a local one: points go out over HTTP, scores come back."""
