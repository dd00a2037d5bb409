"""Starting, stopping and watching servers; comparing runs; results of checks."""
