"""What users call, as scikit-learn's estimators: rows go on to ``trusted``, and only the model is kept."""
