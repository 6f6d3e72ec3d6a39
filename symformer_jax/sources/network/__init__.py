"""The trained model as a source: what it draws, in which views of the data."""
