/* What the stress tests' processes do on the simulated card. Failures end the process with 3. */
#pragma once

#include "sim/cuda/sim_table.h"

/* Ends the process with 3 and a line, unless the call succeeded. */
#define GPU_DO(call) gpu_check((call), #call)
void gpu_check(CUresult result, const char *what);

/* cuInit, and the primary context of card 0 made current. */
CUcontext gpu_start(void);

/* The kernel that takes so long, for an idle card and 132 blocks. */
CUfunction gpu_kernel(unsigned us);
/* The kernel that spins until *flag (32 bits) is not 0. */
CUfunction gpu_spin_kernel(void);

void gpu_launch(CUfunction kernel, CUstream stream);
CUstream gpu_stream(void);

/* Host memory that the card reads: both addresses. */
volatile uint32_t *gpu_host_word(CUdeviceptr *ret_ptr);
