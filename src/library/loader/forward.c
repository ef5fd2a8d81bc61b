/*
 * Exports the driver functions that are not hooked (driver_decisions.h). Each export jumps to the driver's function and leaves
 * all registers and the stack unchanged, because the library does not know the parameters.
 *
 * dlsym and cuGetProcAddress return the driver's own functions. These exports serve a program that is linked with libcuda, and
 * a program whose profiler answers dlopen("libcuda.so.1") with the object that defines cuInit.
 */
#include "abi/cuda_abi.h"
#include "library/loader/known.h"
#include "library/loader/names.h"
#include "library/loader/real.h"

/* Where a call continues. If jump_to is NULL, it returns `error`. */
struct forward_way {
	void *jump_to;
	uintptr_t error;
};

/* Finds where a call of function `number` (names.h) continues. Called if the driver is not found yet, or lacks the function. */
__attribute__((visibility("hidden"), used)) struct forward_way allot_forward_find(uint32_t number);
struct forward_way allot_forward_find(uint32_t number)
{
	bool is_there = real_find_driver();

	return (struct forward_way){
		.jump_to = __atomic_load_n(&known_passed[number], __ATOMIC_RELAXED),
		.error = is_there ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_NO_DEVICE,
	};
}

#if defined(__x86_64__)
__asm__(".text\n"
	".macro ALLOT_FORWARD name number\n"
	"	.globl \\name\n"
	"	.type \\name, @function\n"
	"	.p2align 4\n"
	"\\name:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	movq known_passed+8*\\number(%rip), %r11\n"
	"	testq %r11, %r11\n"
	"	je 1f\n"
	"	jmp *%r11\n"
	"1:	movl $\\number, %r11d\n"
	"	jmp allot_forward_slowly\n"
	"	.cfi_endproc\n"
	"	.size \\name, .-\\name\n"
	".endm\n"
	".type allot_forward_slowly, @function\n"
	".p2align 4\n"
	"allot_forward_slowly:\n"
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
	"	movl %r11d, %edi\n"
	"	call allot_forward_find\n"
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
	".size allot_forward_slowly, .-allot_forward_slowly\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".macro ALLOT_FORWARD name number\n"
	"	.globl \\name\n"
	"	.type \\name, %function\n"
	"	.p2align 4\n"
	"\\name:\n"
	"	.cfi_startproc\n"
	"	hint #34\n"
	"	adrp x16, known_passed+8*\\number\n"
	"	ldr x16, [x16, :lo12:known_passed+8*\\number]\n"
	"	cbz x16, 1f\n"
	"	br x16\n"
	"1:	mov w17, #\\number\n"
	"	b allot_forward_slowly\n"
	"	.cfi_endproc\n"
	"	.size \\name, .-\\name\n"
	".endm\n"
	".type allot_forward_slowly, %function\n"
	".p2align 4\n"
	"allot_forward_slowly:\n"
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
	"	mov w0, w17\n"
	"	bl allot_forward_find\n"
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
	".size allot_forward_slowly, .-allot_forward_slowly\n");
#else
#error "the forwards are written for x86-64 and aarch64"
#endif

#define FORWARD_DEFINE(symbol, number) __asm__("ALLOT_FORWARD " #symbol " " #number "\n");
DRIVER_FORWARDS(FORWARD_DEFINE)
