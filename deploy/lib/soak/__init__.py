"""Long tests of the real program that try to break it; deploy/soak runs them."""
