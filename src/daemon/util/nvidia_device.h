/* The major number of NVIDIA's device files, such as /dev/nvidia0 (Linux, Documentation/admin-guide/devices.txt). */
#pragma once

#define NVIDIA_MAJOR 195
