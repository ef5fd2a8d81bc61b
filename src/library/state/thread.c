#include "library/state/thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

#include "library/loader/elf_lookup.h"
#include "library/state/process_state.h"
#include "library/sys/sys.h"

bool thread_create(void *(*main)(void *))
{
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
		      void *) = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
					 void *))elf_any_symbol(&process_state, "pthread_create");
	uint64_t all = ~0ULL, old = 0;
	pthread_t thread;

	if (!create)
		return false;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &old, sizeof(all));
	int error = create(&thread, NULL, main, NULL);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, sizeof(old));
	/* Nothing joins the thread, and a thread sanitizer would report a leak. */
	int (*detach)(pthread_t) = (int (*)(pthread_t))elf_any_symbol(&process_state,
								      "pthread_detach");
	if (!error && detach)
		detach(thread);
	return error == 0;
}
