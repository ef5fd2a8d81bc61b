/* As much of EGL as cudaEGL.h names. */
#include <stdint.h>
typedef int32_t EGLint;
