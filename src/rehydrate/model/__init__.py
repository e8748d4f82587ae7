"""Messages, effects, events, requests and records: frozen data that every other part speaks in."""
