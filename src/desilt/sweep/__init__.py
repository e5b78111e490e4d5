"""The only package that removes anything: it guards, condemns, then deletes or moves, and brings back."""
