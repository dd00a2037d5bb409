"""Starting, stopping and watching servers; comparing runs; verdicts."""
