"""Two samplers against each other, when no law is known."""
