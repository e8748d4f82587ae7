"""Hosts: what people and programs outside speak to. They know the service, and of stores the port only."""
