/* A library with versioned symbols, data, thread-local and indirect ones, for test_elf_lookup. */

#pragma GCC visibility push(default)

int elf_old(void);
int elf_new(void);
int elf_hidden_only(void);
int elf_plain(void);
int elf_indirect(void);
int elf_not_default(void);

int elf_data = 42;
__thread int elf_thread_local = 7;

int elf_old(void)
{
	return 1;
}

int elf_new(void)
{
	return 2;
}

int elf_hidden_only(void)
{
	return 3;
}

int elf_plain(void)
{
	return 4;
}

int elf_not_default(void)
{
	return 5;
}

__attribute__((used)) static int (*resolve(void))(void)
{
	return elf_plain;
}

int elf_indirect(void) __attribute__((ifunc("resolve")));

__asm__(".symver elf_old, elf_versioned@ELF_1\n"
	".symver elf_new, elf_versioned@@ELF_2\n"
	".symver elf_hidden_only, elf_retired@ELF_1\n");
