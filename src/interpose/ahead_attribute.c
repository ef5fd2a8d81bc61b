/*
 * Function attributes, where launches are queued. Libraries set how much dynamic shared memory a function may
 * use before each launch, now more, now less:
 *
 *   more, or as much      set at once: what is queued succeeds as before
 *   less                  kept here, and set when nothing is queued any more, so that queued launches have what
 *                         they need; meanwhile the program is told what it has set
 *
 * Hints change no launch's success. All else waits for the queue, and nothing is proved any more, since what
 * succeeded may fail from there on.
 */
#include "interpose/ahead_feed.h"
#include "interpose/ahead_inside.h"
#include "interpose/log.h"
#include "interpose/real.h"
#include "interpose/trace_record.h"

/* CUfunction_attribute */
#define MAX_DYNAMIC_SHARED 8 /* bytes */
#define SHARED_CARVEOUT 9    /* a preference */
#define NON_PORTABLE_CLUSTERS 14
#define CLUSTER_SCHEDULING 15

/* A function; or a kernel, and on which device. */
struct subject {
	void *handle;
	bool is_kernel;
	CUdevice device;
};

/* So many are kept at a time; the next one waits for the queue. */
#define LOWERED 64
static struct lowered {
	struct subject subject; /* handle NULL: empty */
	int value;
} lowered[LOWERED];
static _Atomic uint32_t lowered_count;
static struct sys_lock lowered_lock; /* never with the queue's held: the driver is called under it */

typedef CUresult set_function(CUfunction function, CUfunction_attribute attribute, int value);
typedef CUresult set_kernel(CUfunction_attribute attribute, int value, CUkernel kernel,
			    CUdevice device);

static bool ask(const struct subject *s, CUfunction_attribute attribute, int *ret_value)
{
	if (s->is_kernel)
		return real.cuKernelGetAttribute &&
		       real.cuKernelGetAttribute(ret_value, attribute, (CUkernel)s->handle,
						 s->device) == CUDA_SUCCESS;
	return real.cuFuncGetAttribute &&
	       real.cuFuncGetAttribute(ret_value, attribute, (CUfunction)s->handle) == CUDA_SUCCESS;
}

static void set_shared(const struct lowered *l)
{
	set_function *of_function = (set_function *)allot_thunk_real[THUNK_cuFuncSetAttribute];
	set_kernel *of_kernel = (set_kernel *)allot_thunk_real[THUNK_cuKernelSetAttribute];
	CUfunction_attribute attribute = (CUfunction_attribute)MAX_DYNAMIC_SHARED;

	if (l->subject.is_kernel && of_kernel)
		of_kernel(attribute, l->value, (CUkernel)l->subject.handle, l->subject.device);
	else if (!l->subject.is_kernel && of_function)
		of_function((CUfunction)l->subject.handle, attribute, l->value);
}

/* Its entry, or with may_make an empty one; NULL: none. Holds the lock. */
static struct lowered *find(const struct subject *s, bool may_make)
{
	struct lowered *empty = NULL;

	for (struct lowered *l = lowered; l < lowered + LOWERED; l++) {
		if (l->subject.handle == s->handle && l->subject.is_kernel == s->is_kernel &&
		    l->subject.device == s->device)
			return l;
		if (!l->subject.handle && !empty)
			empty = l;
	}
	return may_make ? empty : NULL;
}

static void forget(const struct subject *s)
{
	if (!ahead_has_lowered())
		return;
	WITH_LOCK(&lowered_lock);
	struct lowered *l = find(s, false);
	if (l) {
		l->subject.handle = NULL;
		atomic_fetch_sub(&lowered_count, 1);
	}
}

static bool keep(const struct subject *s, int value)
{
	WITH_LOCK(&lowered_lock);
	struct lowered *l = find(s, true);
	if (!l)
		return false;
	if (!l->subject.handle)
		atomic_fetch_add(&lowered_count, 1);
	l->subject = *s;
	l->value = value;
	return true;
}

bool ahead_has_lowered(void)
{
	return atomic_load(&lowered_count) > 0;
}

void ahead_set_lowered(void)
{
	if (!ahead_has_lowered())
		return;
	WITH_LOCK(&lowered_lock);
	for (struct lowered *l = lowered; l < lowered + LOWERED; l++)
		if (l->subject.handle) {
			set_shared(l);
			l->subject.handle = NULL;
		}
	atomic_store(&lowered_count, 0);
}

void ahead_forget_lowered(void)
{
	for (struct lowered *l = lowered; l < lowered + LOWERED; l++)
		l->subject.handle = NULL;
	atomic_store(&lowered_count, 0);
	lowered_lock = (struct sys_lock){ 0 };
}

static bool meet_set_shared(const struct subject *s, int value, const char *who,
			    CUresult *ret_result)
{
	int now;

	if (!ahead_is_pending() || value < 0 ||
	    !ask(s, (CUfunction_attribute)MAX_DYNAMIC_SHARED, &now)) {
		forget(s);
		return ahead_settle_call(who, ret_result);
	}
	if (value >= now) {
		forget(s);
		return false;
	}
	if (!keep(s, value))
		return ahead_settle_call(who, ret_result);
	if (!ahead_is_pending()) /* who would have set it has been here */
		ahead_set_lowered();
	*ret_result = CUDA_SUCCESS;
	return true;
}

static bool meet_set(const struct subject *s, CUfunction_attribute attribute, int value,
		     const char *who, CUresult *ret_result)
{
	int now;

	if (!ahead_is_used())
		return false;
	switch ((int)attribute) {
	case MAX_DYNAMIC_SHARED: return meet_set_shared(s, value, who, ret_result);
	case SHARED_CARVEOUT:
	case CLUSTER_SCHEDULING: return false;
	case NON_PORTABLE_CLUSTERS:
		if (value == 1)
			return false;
		break;
	default: break;
	}
	if (ask(s, attribute, &now) && now == value)
		return false;
	log_debug("%s: attribute %d of a function becomes %d: all launches are to be proved anew",
		  who, (int)attribute, value);
	trace_code_goes();
	return ahead_settle_call(who, ret_result);
}

static bool meet_get(const struct subject *s, CUfunction_attribute attribute, int *ret_value,
		     CUresult *ret_result)
{
	if (!ahead_has_lowered() || (int)attribute != MAX_DYNAMIC_SHARED || !ret_value)
		return false;
	WITH_LOCK(&lowered_lock);
	const struct lowered *l = find(s, false);
	if (!l)
		return false;
	*ret_value = l->value;
	*ret_result = CUDA_SUCCESS;
	return true;
}

bool ahead_meet_attribute(uint32_t thunk, const uintptr_t a[6], CUresult *ret_result)
{
	struct subject s = { 0 };

	switch (thunk) {
	case THUNK_cuFuncSetAttribute:
		s.handle = (void *)a[0];
		return meet_set(&s, (CUfunction_attribute)a[1], (int)a[2], "cuFuncSetAttribute",
				ret_result);
	case THUNK_cuKernelSetAttribute:
		s = (struct subject){ (void *)a[2], true, (CUdevice)a[3] };
		return meet_set(&s, (CUfunction_attribute)a[0], (int)a[1], "cuKernelSetAttribute",
				ret_result);
	case THUNK_cuFuncGetAttribute:
		s.handle = (void *)a[2];
		return meet_get(&s, (CUfunction_attribute)a[1], (int *)a[0], ret_result);
	default: /* cuKernelGetAttribute */
		s = (struct subject){ (void *)a[2], true, (CUdevice)a[3] };
		return meet_get(&s, (CUfunction_attribute)a[1], (int *)a[0], ret_result);
	}
}
