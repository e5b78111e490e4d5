"""Shipped with desilt: the naive oracle that judges it, and servers and stories to test with."""
