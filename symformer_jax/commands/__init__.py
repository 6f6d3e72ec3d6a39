"""What only commands need: exit codes, tables, printing, figures."""
