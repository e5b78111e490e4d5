"""Commands about repositories of a lakeFS server."""
