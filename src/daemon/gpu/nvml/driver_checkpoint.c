#include "daemon/gpu/nvml/driver_checkpoint.h"

#include <dlfcn.h>
#include <errno.h>

#include "abi/driver_table.h"

#define CALLS(CALL) \
	CALL(cuInit, (unsigned int flags)) \
	DRIVER_CHECKPOINT_CALLS(CALL)

struct checkpoint_driver {
#define SLOT(symbol, params) CUresult(*symbol) params;
	CALLS(SLOT)
#undef SLOT
	CUresult (*error_name)(CUresult error, const char **name);
};

static const char *name_of(const struct checkpoint_driver *d, CUresult result)
{
	const char *name = NULL;
	if (d->error_name && d->error_name(result, &name) == CUDA_SUCCESS && name)
		return name;
	return "an unknown error";
}

int checkpoint_driver_open(const char *library, struct checkpoint_driver **ret, struct error *err)
{
	static struct checkpoint_driver d; /* not freed: libcuda cannot be unloaded */
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	const char *missing = NULL;
	if (!handle)
		return error_set(err, ENODEV, "%s", dlerror());
#define FIND(symbol, params) \
	d.symbol = (__typeof__(d.symbol))dlsym(handle, #symbol); \
	if (!d.symbol && !missing) \
		missing = #symbol;
	CALLS(FIND)
#undef FIND
	d.error_name = (__typeof__(d.error_name))dlsym(handle, "cuGetErrorName");
	if (missing)
		return error_set(
			err, EOPNOTSUPP,
			"the driver has no %s: taking a process off its GPU needs driver 570 or "
			"newer",
			missing);
	CUresult result = d.cuInit(0);
	if (result != CUDA_SUCCESS)
		return error_set(err, ENODEV, "cuInit: %s", name_of(&d, result));
	*ret = &d;
	return 0;
}

enum checkpoint_state checkpoint_driver_state(struct checkpoint_driver *d, int pid)
{
	CUprocessState state;
	CUresult result = d->cuCheckpointProcessGetState(pid, &state);
	if (result == CUDA_ERROR_NOT_INITIALIZED || result == CUDA_ERROR_INVALID_VALUE)
		return CHECKPOINT_GONE;
	/* If the driver does not tell the state, assume that the process runs: the first step then returns the error. */
	if (result != CUDA_SUCCESS)
		return CHECKPOINT_RUNNING;
	switch (state) {
	case CU_PROCESS_STATE_RUNNING: return CHECKPOINT_RUNNING;
	case CU_PROCESS_STATE_LOCKED: return CHECKPOINT_LOCKED;
	case CU_PROCESS_STATE_CHECKPOINTED: return CHECKPOINT_SAVED;
	default: return CHECKPOINT_FAILED;
	}
}

static CUresult call(struct checkpoint_driver *d, enum checkpoint_step step, int pid,
		     unsigned lock_ms)
{
	CUcheckpointLockArgs lock = { .timeoutMs = lock_ms };
	switch (step) {
	case CHECKPOINT_LOCK: return d->cuCheckpointProcessLock(pid, &lock);
	case CHECKPOINT_SAVE: return d->cuCheckpointProcessCheckpoint(pid, NULL);
	case CHECKPOINT_RESTORE: return d->cuCheckpointProcessRestore(pid, NULL);
	case CHECKPOINT_UNLOCK: return d->cuCheckpointProcessUnlock(pid, NULL);
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

int checkpoint_driver_do(struct checkpoint_driver *d, enum checkpoint_step step, int pid,
			 unsigned lock_ms, struct error *err)
{
	static const char *const verbs[] = {
		[CHECKPOINT_LOCK] = "locked",
		[CHECKPOINT_SAVE] = "checkpointed",
		[CHECKPOINT_RESTORE] = "restored",
		[CHECKPOINT_UNLOCK] = "unlocked",
	};
	CUresult result = call(d, step, pid, lock_ms);
	int code = EIO;
	const char *why = "";
	switch (result) {
	case CUDA_SUCCESS: return 0;
	case CUDA_ERROR_OUT_OF_MEMORY: code = ENOMEM; break;
	case CUDA_ERROR_NOT_READY:
		code = ETIMEDOUT;
		why = ": its GPU work did not end in time";
		break;
	case CUDA_ERROR_NOT_SUPPORTED:
		code = EOPNOTSUPP;
		why = ": the driver can't move managed memory, or memory that other processes "
		      "share";
		break;
	case CUDA_ERROR_NOT_PERMITTED:
		code = EPERM;
		why = ": only root and the process's own user may do that";
		break;
	default: break;
	}
	return error_set(err, code, "process %d can't be %s: %s%s", pid, verbs[step],
			 name_of(d, result), why);
}
