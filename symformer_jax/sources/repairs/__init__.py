"""What near formulas lack: columns, plain terms, another function in the place of one."""
