/*
 * dlsym, hooked. The exported symbol is a few instructions of assembly: what is not ours jumps on to
 * the real dlsym with the caller's own return address, because RTLD_NEXT is relative to the caller
 * (a C wrapper sends a second interposer into endless recursion).
 *
 * May run before libc is ready: the first dlsym of a process is often an allocator's.
 */
#include <dlfcn.h>
#include <stddef.h>

#include "interpose/elf_lookup.h"
#include "interpose/real.h"
#include "interpose/sys.h"

typedef void *dlsym_function(void *handle, const char *name);

struct dlsym_answer {
	void *address;
	uintptr_t is_final; /* 0: let the real dlsym answer its caller */
};

/* Both are named by the assembly below. */
__attribute__((visibility("hidden"), used)) dlsym_function *allot_real_dlsym;
struct dlsym_answer allot_dlsym_filter(void *handle, const char *name);

/*
 * The next definition after ours, as an earlier interposer's would be found; on a libc whose libdl
 * was loaded ahead of us, any other.
 */
static dlsym_function *find_real_dlsym(void)
{
	dlsym_function *next = (dlsym_function *)elf_next_symbol_early("dlsym");

	if (!next)
		next = (dlsym_function *)elf_next_symbol(&allot_real_dlsym, "dlsym");
	return next ? next : (dlsym_function *)elf_any_symbol(&allot_real_dlsym, "dlsym");
}

__attribute__((visibility("hidden"), used)) struct dlsym_answer allot_dlsym_filter(void *handle,
										   const char *name)
{
	const struct dlsym_answer pass_on = { NULL, 0 };
	dlsym_function *real_dlsym = __atomic_load_n(&allot_real_dlsym, __ATOMIC_RELAXED);

	if (unlikely(!real_dlsym)) {
		real_dlsym = find_real_dlsym();
		__atomic_store_n(&allot_real_dlsym, real_dlsym, __ATOMIC_RELAXED);
		if (!real_dlsym) /* no libdl in this process: nothing can be looked up */
			return (struct dlsym_answer){ NULL, 1 };
	}
	/* RTLD_NEXT: somebody behind us in the order wants what is behind him. */
	if (!name || handle == RTLD_NEXT)
		return pass_on;
	void *our_hook = real_hook_of_name(name);
	if (likely(!our_hook))
		return pass_on;

	void *address = real_dlsym(handle, name);
	if (address == our_hook) {
		/* A search of the global scope ends at our export even where no driver is loaded. */
		bool is_loaded = name[0] == 'c' ? real_find_driver() : real_find_nvml();
		return (struct dlsym_answer){ is_loaded ? address : NULL, 1 };
	}
	void *hook = real_hook_of_address(address);
	return (struct dlsym_answer){ hook ? hook : address, 1 };
}

#if defined(__x86_64__)
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, @function\n"
	".p2align 4\n"
	"dlsym:\n"
	".cfi_startproc\n"
	"	endbr64\n"
	"	pushq %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	pushq %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	subq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call allot_dlsym_filter\n"
	"	addq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	testq %rdx, %rdx\n"
	"	jne 1f\n"
	"	movq allot_real_dlsym(%rip), %rax\n"
	"	jmp *%rax\n"
	"1:	ret\n"
	".cfi_endproc\n"
	".size dlsym, .-dlsym\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, %function\n"
	".p2align 4\n"
	"dlsym:\n"
	".cfi_startproc\n"
	"	stp x0, x1, [sp, #-32]!\n"
	"	.cfi_adjust_cfa_offset 32\n"
	"	str x30, [sp, #16]\n"
	"	.cfi_offset x30, -16\n"
	"	bl allot_dlsym_filter\n"
	"	mov x9, x0\n"
	"	mov x10, x1\n"
	"	ldr x30, [sp, #16]\n"
	"	ldp x0, x1, [sp], #32\n"
	"	.cfi_adjust_cfa_offset -32\n"
	"	.cfi_restore x30\n"
	"	cbnz x10, 1f\n"
	"	adrp x9, allot_real_dlsym\n"
	"	ldr x9, [x9, #:lo12:allot_real_dlsym]\n"
	"	br x9\n"
	"1:	mov x0, x9\n"
	"	ret\n"
	".cfi_endproc\n"
	".size dlsym, .-dlsym\n");
#else
#error "the dlsym trampoline is written for x86-64 and aarch64"
#endif
