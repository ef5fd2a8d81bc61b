"""The groups of tests/gpu/run, a module each: check(machine, tally, options)."""
