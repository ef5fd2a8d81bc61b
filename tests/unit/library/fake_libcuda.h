/* Constants that the fake libcuda.so.1 and libnvidia-ml.so.1 share with the programs that use them. */
#pragma once

#define FAKE_UUID "\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef"
#define FAKE_UUID_TEXT "GPU-01234567-89ab-cdef-0123-456789abcdef"
#define FAKE_MEMORY_BYTES (16ULL << 30)
