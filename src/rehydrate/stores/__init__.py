"""Stores: places where checkpoints live, all behind `rehydrate.ports.CheckpointStorage`.

A store sees sealed records and headers. No module here opens a user's value or decides how a run goes on.
"""
