"""Other servers doing what a push does, to be measured beside the gateway."""
