"""Code that bench/run and tests/gpu/run share: finds the build's programs, runs tenants, reads NVML, writes reports."""
