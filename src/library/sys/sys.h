/*
 * System calls are made directly where libc's wrapper would need a symbol newer than glibc 2.17. Everything here may run before
 * libc is ready, is thread safe, allocates nothing, and keeps the program's errno.
 */
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ALLOT_EXPORT __attribute__((visibility("default")))
/* Addressed directly instead of through the global offset table. */
#define SYS_DATA extern __attribute__((visibility("hidden")))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#ifdef __aarch64__
#define SYS_PAGE 65536 /* the largest page size */
#else
#define SYS_PAGE 4096
#endif

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* Linux 4.14 */
#endif

#define NS_PER_US 1000ULL
#define NS_PER_MS 1000000ULL
#define NS_PER_S 1000000000ULL

/* CLOCK_MONOTONIC. Takes 23 ns, too long for each launch. */
static inline uint64_t sys_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Returns after timeout_ns at the latest, at once if *word != value. `shared` is for a word in a file mapping. */
static inline void sys_futex_wait(const _Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns,
				  bool shared)
{
	struct timespec t = {
		.tv_sec = (time_t)(timeout_ns / NS_PER_S),
		.tv_nsec = (long)(timeout_ns % NS_PER_S),
	};
	int saved = errno;
	syscall(SYS_futex, word, shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, value, &t, NULL, 0);
	errno = saved;
}

/*
 * As sys_futex_wait(), but returns how long the thread waited, at most timeout_ns. To limit a wait of several calls, add up
 * these results. The clock also runs while the whole process is stopped (SIGSTOP, a frozen cgroup, a paused virtual machine).
 */
static inline uint64_t sys_futex_nap(const _Atomic uint32_t *word, uint32_t value,
				     uint64_t timeout_ns, bool shared)
{
	uint64_t begin_ns = sys_now_ns();

	sys_futex_wait(word, value, timeout_ns, shared);
	uint64_t passed_ns = sys_now_ns() - begin_ns;
	return passed_ns < timeout_ns ? passed_ns : timeout_ns;
}

static inline void sys_futex_wake(const _Atomic uint32_t *word, int count)
{
	int saved = errno;
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
	errno = saved;
}

/* For a word in a file mapping: wakes waiters in all processes that map the file. */
static inline void sys_futex_wake_shared(const _Atomic uint32_t *word, int count)
{
	int saved = errno;
	syscall(SYS_futex, word, FUTEX_WAKE, count, NULL, NULL, 0);
	errno = saved;
}

/* Whether the eight bytes at `address` can be read. The system call always fails, but the kernel reads the bytes first. */
static inline bool sys_is_readable(const void *address)
{
	int saved = errno;
	bool is_fault = syscall(SYS_rt_sigprocmask, -1, address, NULL, 8) && errno == EFAULT;

	errno = saved;
	return !is_fault;
}

static inline void sys_sleep_ns(uint64_t ns)
{
	struct timespec t = {
		.tv_sec = (time_t)(ns / NS_PER_S),
		.tv_nsec = (long)(ns % NS_PER_S),
	};
	int saved = errno;
	syscall(SYS_nanosleep, &t, NULL);
	errno = saved;
}

/*
 * Returns private memory of zeros, or NULL if none is left. If `old` is not NULL, enlarges that memory from old_bytes to
 * `bytes`: its contents stay, but its address may change. If this fails, `old` is unchanged. Free the memory by munmap().
 */
static inline void *sys_map(void *old, size_t old_bytes, size_t bytes)
{
	int saved = errno;
	void *at = old ? mremap(old, old_bytes, bytes, MREMAP_MAYMOVE)
		       : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			      0);
	errno = saved;
	return at == MAP_FAILED ? NULL : at;
}

/* A mutex, free if zero, not recursive. pthread's may be missing (old glibc) or interposed. locks.h has the list. */
struct sys_lock {
	_Atomic uint32_t state; /* 0 free, 1 held, 2 held with waiters */
};

static inline bool sys_trylock(struct sys_lock *lock)
{
	uint32_t expected = 0;
	return atomic_compare_exchange_strong_explicit(&lock->state, &expected, 1,
						       memory_order_acquire, memory_order_relaxed);
}

static inline void sys_lock(struct sys_lock *lock)
{
	if (likely(sys_trylock(lock)))
		return;
	while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0)
		sys_futex_wait(&lock->state, 2, NS_PER_S, false);
}

static inline void sys_unlock(struct sys_lock *lock)
{
	if (atomic_exchange_explicit(&lock->state, 0, memory_order_release) == 2)
		sys_futex_wake(&lock->state, 1);
}

static inline void sys_unlock_cleanup(struct sys_lock **lock)
{
	sys_unlock(*lock);
}

/* Holds `lock` until the end of the scope. */
#define WITH_LOCK(lock) \
	__attribute__((cleanup(sys_unlock_cleanup), unused)) struct sys_lock *held_lock = (lock); \
	sys_lock(held_lock)
