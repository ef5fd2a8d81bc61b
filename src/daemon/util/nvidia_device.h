/* The major number of NVIDIA's device files /dev/nvidia0, /dev/nvidiactl and others: Linux, Documentation/admin-guide/devices.txt. */
#pragma once

#define NVIDIA_MAJOR 195
