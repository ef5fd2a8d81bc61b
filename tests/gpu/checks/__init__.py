"""The groups of tests/gpu/run. Each is a module with a function check(machine, tally, options)."""
