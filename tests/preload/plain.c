/* An ordinary program: memory, output, an exit handler, a status of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void goodbye(void)
{
	puts("goodbye");
}

int main(void)
{
	char *copy = strdup("hello");

	atexit(goodbye);
	puts(copy);
	free(copy);
	return 5;
}
