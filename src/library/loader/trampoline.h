/*
 * An exported loader function (dlsym, dlopen ...) with a filter, which first checks the arguments. If the filter lets a call
 * through, the trampoline, a few instructions of assembly, jumps to the real function with the caller's own return address. The
 * loader needs that address: RTLD_NEXT, the namespace and the RUNPATH depend on the caller. With a wrapper in C, the caller
 * would seem to be this library, and a second interposer would recurse endlessly.
 *
 *     struct trampoline_way allot_filter_dlsym(uintptr_t argument[4]);
 *     TRAMPOLINE(dlsym)
 *
 * argument[3] is the caller's return address. A filter may change the other arguments. It may run before libc is ready.
 */
#pragma once

#include <stdint.h>

struct trampoline_way {
	void *jump_to; /* NULL to return `result` */
	void *result;
};

#define TRAMPOLINE_FILTER __attribute__((visibility("hidden"), used)) struct trampoline_way

static inline struct trampoline_way trampoline_jump(void *function)
{
	return (struct trampoline_way){ .jump_to = function };
}

static inline struct trampoline_way trampoline_return(void *result)
{
	return (struct trampoline_way){ .result = result };
}

#if defined(__x86_64__)
#define TRAMPOLINE(name) \
	__asm__(".text\n" \
		".globl " #name "\n" \
		".type " #name ", @function\n" \
		".p2align 4\n" #name ":\n" \
		".cfi_startproc\n" \
		"	endbr64\n" \
		"	pushq %rdx\n" \
		"	.cfi_adjust_cfa_offset 8\n" \
		"	pushq %rsi\n" \
		"	.cfi_adjust_cfa_offset 8\n" \
		"	pushq %rdi\n" \
		"	.cfi_adjust_cfa_offset 8\n" \
		"	movq %rsp, %rdi\n" \
		"	call allot_filter_" #name "\n" \
		"	movq %rdx, %r11\n" \
		"	popq %rdi\n" \
		"	.cfi_adjust_cfa_offset -8\n" \
		"	popq %rsi\n" \
		"	.cfi_adjust_cfa_offset -8\n" \
		"	popq %rdx\n" \
		"	.cfi_adjust_cfa_offset -8\n" \
		"	testq %rax, %rax\n" \
		"	je 1f\n" \
		"	jmp *%rax\n" \
		"1:	movq %r11, %rax\n" \
		"	ret\n" \
		".cfi_endproc\n" \
		".size " #name ", .-" #name "\n");
#elif defined(__aarch64__)
#define TRAMPOLINE(name) \
	__asm__(".text\n" \
		".globl " #name "\n" \
		".type " #name ", %function\n" \
		".p2align 4\n" #name ":\n" \
		".cfi_startproc\n" \
		"	stp x0, x1, [sp, #-32]!\n" \
		"	.cfi_adjust_cfa_offset 32\n" \
		"	stp x2, x30, [sp, #16]\n" \
		"	.cfi_offset x30, -8\n" \
		"	mov x0, sp\n" \
		"	bl allot_filter_" #name "\n" \
		"	mov x16, x0\n" \
		"	mov x17, x1\n" \
		"	ldp x2, x30, [sp, #16]\n" \
		"	ldp x0, x1, [sp], #32\n" \
		"	.cfi_adjust_cfa_offset -32\n" \
		"	.cfi_restore x30\n" \
		"	cbz x16, 1f\n" \
		"	br x16\n" \
		"1:	mov x0, x17\n" \
		"	ret\n" \
		".cfi_endproc\n" \
		".size " #name ", .-" #name "\n");
#else
#error "the trampolines are written for x86-64 and aarch64"
#endif
