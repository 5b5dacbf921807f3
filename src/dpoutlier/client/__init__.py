"""A client of the trusted server: a model that is elsewhere, with the methods of one that is here."""
