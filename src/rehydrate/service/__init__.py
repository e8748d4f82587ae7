"""What is done with stored runs beside running them: history, comparison, retention, export and import."""
