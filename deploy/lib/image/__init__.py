"""What is looked for in an image; deploy/test-image calls it."""
