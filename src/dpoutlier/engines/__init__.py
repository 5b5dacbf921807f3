"""Tables that are not in memory. One file for each engine, one line in ``registry``; ``expressions`` are what all engines share."""
