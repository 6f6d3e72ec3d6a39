"""How an answer is shown: figures, tables, code, pages."""
