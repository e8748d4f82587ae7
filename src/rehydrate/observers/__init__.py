"""Observers: what makes traces and metrics of what the runtime tells. Each needs an extra of its own."""
