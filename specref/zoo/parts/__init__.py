"""The rules of the zoo with replaceable parts, of which mutants are made."""
