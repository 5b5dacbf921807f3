"""The trusted server: it loads models and scores with them. No route sees reference rows."""
