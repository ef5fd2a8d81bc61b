"""Code that bench/run and tests/gpu/run share: programs of the build, tenants, NVML, reports."""
