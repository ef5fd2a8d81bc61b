/* As much of VDPAU as cudaVDPAU.h names. */
#include <stdint.h>
typedef uint32_t VdpDevice;
typedef uint32_t VdpVideoSurface;
typedef uint32_t VdpOutputSurface;
typedef int VdpGetProcAddress(VdpDevice device, uint32_t function, void **ret_function);
