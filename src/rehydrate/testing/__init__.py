"""Testing: what the library's own tests use and users may use for theirs."""
