"""The network: a set encoder for the points and an autoregressive decoder for symbols and constants."""
