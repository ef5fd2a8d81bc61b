/* A checkpoint frees all that a process has on its GPUs, until a restore. The server does the work (server/checkpoint.c). */
#include <errno.h>
#include <signal.h>

#include "sim/cuda/sim.h"

static CUresult ask(uint32_t type, int pid, uint64_t more, uint64_t *ret_val)
{
	SIM_FAIL_IF(pid <= 0 || (kill(pid, 0) < 0 && errno == ESRCH), CUDA_ERROR_INVALID_VALUE);
	return sim_call((struct sim_request_msg){ .type = type, .arg = { (uint64_t)pid, more } },
			ret_val);
}

CUresult cuCheckpointProcessGetState(int pid, CUprocessState *state)
{
	uint64_t val[5];

	SIM_ENTER(cuCheckpointProcessGetState);
	SIM_FAIL_IF(!state, CUDA_ERROR_INVALID_VALUE);
	SIM_TRY(ask(SIM_PROCESS_STATE, pid, 0, val));
	*state = (CUprocessState)val[0];
	return CUDA_SUCCESS;
}

/* Any thread can restore a simulated process, so this returns the main thread. */
CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int *tid)
{
	uint64_t val[5];

	SIM_ENTER(cuCheckpointProcessGetRestoreThreadId);
	SIM_FAIL_IF(!tid, CUDA_ERROR_INVALID_VALUE);
	SIM_TRY(ask(SIM_PROCESS_STATE, pid, 0, val));
	*tid = pid;
	return CUDA_SUCCESS;
}

CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args)
{
	SIM_ENTER(cuCheckpointProcessLock);
	SIM_FAIL_IF(args && args->reserved0, CUDA_ERROR_INVALID_VALUE);
	return ask(SIM_PROCESS_LOCK, pid, args ? args->timeoutMs : 0, NULL);
}

SIM_FUNCTION(cuCheckpointProcessCheckpoint, (int pid, CUcheckpointCheckpointArgs *args),
	     ask(SIM_PROCESS_CHECKPOINT, pid, 0, NULL))
SIM_FUNCTION(cuCheckpointProcessRestore, (int pid, CUcheckpointRestoreArgs *args),
	     ask(SIM_PROCESS_RESTORE, pid, 0, NULL))
SIM_FUNCTION(cuCheckpointProcessUnlock, (int pid, CUcheckpointUnlockArgs *args),
	     ask(SIM_PROCESS_UNLOCK, pid, 0, NULL))
