"""How the published test vectors are made: cases written by hand, answers derived by the rules."""
