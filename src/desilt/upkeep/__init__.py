"""A lake kept in order by one file and one command: what is due, in the right order, each step with its own guards."""
