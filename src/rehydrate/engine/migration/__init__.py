"""Changes to the records of a stored run that bring it up to another version of its graph; pure, like the engine."""
