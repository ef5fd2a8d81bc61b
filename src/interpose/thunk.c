#include "interpose/thunk.h"

#include "interpose/ahead.h"
#include "interpose/elf_lookup.h"
#include "interpose/guest.h"
#include "interpose/real.h"
#include "interpose/trampoline.h"

void *allot_thunk_real[THUNK_ALL];

/* What a watched function's thunk looks at in place of the flag. */
__attribute__((visibility("hidden"), used)) uint32_t allot_thunk_always = 1;
/* ... and a quiet one's. */
__attribute__((visibility("hidden"), used)) uint32_t allot_thunk_never;

#define QUIET_NAME(symbol, kind, number) #symbol,
static const char quiet_names[][64] = { DRIVER_QUIET_THUNKS(QUIET_NAME) };

static void *find_quiet(uint32_t number)
{
	struct elf_object object;
	void *address = NULL;

	if (elf_find_object("libcuda.so.1", &object))
		address = elf_symbol(&object, quiet_names[number - THUNK_COUNT]);
	__atomic_store_n(&allot_thunk_real[number], address, __ATOMIC_RELAXED);
	return address;
}

void thunk_forget_quiet(void)
{
	for (uint32_t i = THUNK_COUNT; i < THUNK_ALL; i++)
		__atomic_store_n(&allot_thunk_real[i], NULL, __ATOMIC_RELAXED);
}

/* The flag is the first field of guest: assembly knows no offsets. */
_Static_assert(offsetof(struct guest, ahead) == 0, "the thunks look at it");
_Static_assert(sizeof(((struct guest *)0)->ahead) == 4, "the thunks look at it");

/* Where the call goes on; by its arguments, as six registers hold them. */
TRAMPOLINE_FILTER allot_thunk_filter(const uintptr_t argument[6], uint32_t number);
TRAMPOLINE_FILTER allot_thunk_filter(const uintptr_t argument[6], uint32_t number)
{
	void **slot = &allot_thunk_real[number];

	if (number >= THUNK_COUNT) {
		void *address = find_quiet(number);
		if (address)
			return trampoline_jump(address);
		return trampoline_return((void *)(uintptr_t)(real_find_driver()
								     ? CUDA_ERROR_NOT_FOUND
								     : CUDA_ERROR_NO_DEVICE));
	}
	if (!__atomic_load_n(slot, __ATOMIC_RELAXED)) {
		bool is_there = real_find_driver();
		if (!__atomic_load_n(slot, __ATOMIC_RELAXED))
			return trampoline_return(
				(void *)(uintptr_t)(is_there ? CUDA_ERROR_NOT_FOUND
							     : CUDA_ERROR_NO_DEVICE));
	}
	CUresult result;
	if (ahead_meet(number, argument, &result))
		return trampoline_return((void *)(uintptr_t)result);
	return trampoline_jump(__atomic_load_n(slot, __ATOMIC_RELAXED));
}

#if defined(__x86_64__)
__asm__(".text\n"
	".macro ALLOT_THUNK name number flag\n"
	"	.globl \\name\n"
	"	.type \\name, @function\n"
	"	.p2align 4\n"
	"\\name:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	cmpl $0, \\flag(%rip)\n"
	"	jne 1f\n"
	"	movq allot_thunk_real+8*\\number(%rip), %r11\n"
	"	testq %r11, %r11\n"
	"	je 1f\n"
	"	jmp *%r11\n"
	"1:	movl $\\number, %r11d\n"
	"	jmp allot_thunk_ask\n"
	"	.cfi_endproc\n"
	"	.size \\name, .-\\name\n"
	".endm\n"
	".type allot_thunk_ask, @function\n"
	".p2align 4\n"
	"allot_thunk_ask:\n"
	"	.cfi_startproc\n"
	"	pushq %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbp, -16\n"
	"	movq %rsp, %rbp\n"
	"	.cfi_def_cfa_register %rbp\n"
	"	subq $192, %rsp\n"
	"	movq %rdi, (%rsp)\n"
	"	movq %rsi, 8(%rsp)\n"
	"	movq %rdx, 16(%rsp)\n"
	"	movq %rcx, 24(%rsp)\n"
	"	movq %r8, 32(%rsp)\n"
	"	movq %r9, 40(%rsp)\n"
	"	movq %rax, 48(%rsp)\n"
	"	movups %xmm0, 64(%rsp)\n"
	"	movups %xmm1, 80(%rsp)\n"
	"	movups %xmm2, 96(%rsp)\n"
	"	movups %xmm3, 112(%rsp)\n"
	"	movups %xmm4, 128(%rsp)\n"
	"	movups %xmm5, 144(%rsp)\n"
	"	movups %xmm6, 160(%rsp)\n"
	"	movups %xmm7, 176(%rsp)\n"
	"	movq %rsp, %rdi\n"
	"	movl %r11d, %esi\n"
	"	call allot_thunk_filter\n"
	"	movq %rax, %r11\n"
	"	movq %rdx, %r10\n"
	"	movq (%rsp), %rdi\n"
	"	movq 8(%rsp), %rsi\n"
	"	movq 16(%rsp), %rdx\n"
	"	movq 24(%rsp), %rcx\n"
	"	movq 32(%rsp), %r8\n"
	"	movq 40(%rsp), %r9\n"
	"	movq 48(%rsp), %rax\n"
	"	movups 64(%rsp), %xmm0\n"
	"	movups 80(%rsp), %xmm1\n"
	"	movups 96(%rsp), %xmm2\n"
	"	movups 112(%rsp), %xmm3\n"
	"	movups 128(%rsp), %xmm4\n"
	"	movups 144(%rsp), %xmm5\n"
	"	movups 160(%rsp), %xmm6\n"
	"	movups 176(%rsp), %xmm7\n"
	"	leave\n"
	"	.cfi_def_cfa %rsp, 8\n"
	"	testq %r11, %r11\n"
	"	je 1f\n"
	"	jmp *%r11\n"
	"1:	movl %r10d, %eax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size allot_thunk_ask, .-allot_thunk_ask\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".macro ALLOT_THUNK name number flag\n"
	"	.globl \\name\n"
	"	.type \\name, %function\n"
	"	.p2align 4\n"
	"\\name:\n"
	"	.cfi_startproc\n"
	"	hint #34\n"
	"	adrp x16, \\flag\n"
	"	add x16, x16, :lo12:\\flag\n"
	"	ldar w17, [x16]\n"
	"	cbnz w17, 1f\n"
	"	adrp x16, allot_thunk_real+8*\\number\n"
	"	ldr x16, [x16, :lo12:allot_thunk_real+8*\\number]\n"
	"	cbz x16, 1f\n"
	"	br x16\n"
	"1:	mov w17, #\\number\n"
	"	b allot_thunk_ask\n"
	"	.cfi_endproc\n"
	"	.size \\name, .-\\name\n"
	".endm\n"
	".type allot_thunk_ask, %function\n"
	".p2align 4\n"
	"allot_thunk_ask:\n"
	"	.cfi_startproc\n"
	"	stp x29, x30, [sp, #-16]!\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset x29, -16\n"
	"	.cfi_offset x30, -8\n"
	"	mov x29, sp\n"
	"	.cfi_def_cfa_register x29\n"
	"	sub sp, sp, #208\n"
	"	stp x0, x1, [sp]\n"
	"	stp x2, x3, [sp, #16]\n"
	"	stp x4, x5, [sp, #32]\n"
	"	stp x6, x7, [sp, #48]\n"
	"	str x8, [sp, #64]\n"
	"	stp q0, q1, [sp, #80]\n"
	"	stp q2, q3, [sp, #112]\n"
	"	stp q4, q5, [sp, #144]\n"
	"	stp q6, q7, [sp, #176]\n"
	"	mov x0, sp\n"
	"	mov w1, w17\n"
	"	bl allot_thunk_filter\n"
	"	mov x16, x0\n"
	"	mov x17, x1\n"
	"	ldp x0, x1, [sp]\n"
	"	ldp x2, x3, [sp, #16]\n"
	"	ldp x4, x5, [sp, #32]\n"
	"	ldp x6, x7, [sp, #48]\n"
	"	ldr x8, [sp, #64]\n"
	"	ldp q0, q1, [sp, #80]\n"
	"	ldp q2, q3, [sp, #112]\n"
	"	ldp q4, q5, [sp, #144]\n"
	"	ldp q6, q7, [sp, #176]\n"
	"	mov sp, x29\n"
	"	ldp x29, x30, [sp], #16\n"
	"	.cfi_def_cfa sp, 0\n"
	"	.cfi_restore x29\n"
	"	.cfi_restore x30\n"
	"	cbz x16, 1f\n"
	"	br x16\n"
	"1:	mov x0, x17\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size allot_thunk_ask, .-allot_thunk_ask\n");
#else
#error "the thunks are written for x86-64 and aarch64"
#endif

#define FLAG_USUAL "guest"
#define FLAG_WATCHED "allot_thunk_always"
#define FLAG_QUIET "allot_thunk_never"
#define THUNK_DEFINE(symbol, kind, number) \
	__asm__("ALLOT_THUNK " #symbol " " #number " " FLAG_##kind "\n");
DRIVER_THUNKS(THUNK_DEFINE)
DRIVER_QUIET_THUNKS(THUNK_DEFINE)
