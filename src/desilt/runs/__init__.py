"""What a run leaves behind: its folder, its plan, its report."""
