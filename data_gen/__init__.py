"""Random formulas in, TFRecord shards out."""
