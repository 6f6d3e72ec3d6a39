"""What a formula is: operators, tokens, constants, text, evaluation."""
