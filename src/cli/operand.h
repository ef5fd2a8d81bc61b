/* What the subcommands with one operand begin with: their options, anywhere, and that operand. */
#pragma once

#include "cli/command.h"

/*
 * Reads the options of self->rows into `options`, and returns the operand, in argv. NULL: the help
 * or what is wrong has been printed, and *ret_status is the exit status; `wanted` is what is printed
 * where there is not one operand.
 */
char *operand_read(const struct command *self, int argc, char **argv, void *options,
		   const char *wanted, int *ret_status);

/* The same where the operand is a tenant's name. */
const char *operand_read_tenant(const struct command *self, int argc, char **argv, void *options,
				int *ret_status);

/* Of a command without operands: below 0 to go on; else the exit status, and all has been printed. */
int operand_read_none(const struct command *self, int argc, char **argv, void *options);
