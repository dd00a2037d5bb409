"""The search for secrets in an image; deploy/test-image calls it."""
