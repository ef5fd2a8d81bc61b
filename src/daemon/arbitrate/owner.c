#include "daemon/arbitrate/owner.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct robust_list_head head;
static pid_t thread; /* the thread whose robust list is registered */

/* Registers this thread's robust list if needed; a forked child needs its own. False if the kernel lacks robust lists. */
static bool has_list(void)
{
	pid_t self = (pid_t)syscall(SYS_gettid);
	if (thread == self)
		return true;
	head.list.next = &head.list;
	head.futex_offset = (long)offsetof(struct region_control, owner) - OWNER_LINK_AT;
	if (syscall(SYS_set_robust_list, &head, sizeof(head)) < 0)
		return false;
	thread = self;
	return true;
}

static struct robust_list *link_of(struct region_control *control)
{
	return (struct robust_list *)(void *)((char *)control + OWNER_LINK_AT);
}

void *owner_map(int fd)
{
	void *at = mmap(NULL, OWNER_MAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	if (at == MAP_FAILED)
		return NULL;
	if (mmap(at, OWNER_LINK_AT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != at) {
		munmap(at, OWNER_MAP_BYTES);
		return NULL;
	}
	return at;
}

void owner_hold(struct region_control *control)
{
	struct robust_list *link = link_of(control);
	if (!has_list())
		return;
	atomic_store(&control->owner, (uint32_t)thread & FUTEX_TID_MASK);
	link->next = head.list.next;
	head.list.next = link;
}

void owner_release(struct region_control *control)
{
	const struct robust_list *link = link_of(control);
	struct robust_list *before = &head.list;
	if (!atomic_load(&control->owner))
		return;
	while (before->next != &head.list && before->next != link)
		before = before->next;
	if (before->next == link)
		before->next = link->next;
	atomic_store(&control->owner, FUTEX_OWNER_DIED);
}
