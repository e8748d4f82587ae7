"""The public face: workflows, their builder, sessions."""
