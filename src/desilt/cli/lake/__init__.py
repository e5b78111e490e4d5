"""`desilt lake`, and what else is about a lake of our own."""
