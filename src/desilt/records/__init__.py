"""What desilt remembers of its own work: runs, removals, locks, watermarks, policies, holds."""
