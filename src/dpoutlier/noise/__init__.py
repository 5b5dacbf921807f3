"""How releases are randomised: exact laws of noise and choices, their random bytes, how they are drawn. No reference rows."""
