/*
 * differential-calls: executes sequences of driver and NVML calls with good, odd and wrong arguments, and
 * writes down what each did. Two of these processes, one of them in a tenant, are compared by `run`.
 *
 * A transcript names everything by its place in the sequence, never by its value: the second stream that
 * was made is CUstream#1 whatever its address, so that equal behaviour gives equal text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PARAMS_MAX 12
#define NAME_SIZE 64

/* How an argument is chosen for a parameter: one of these classes. */
enum class {
	GOOD,
	ZERO,       /* NULL, 0 */
	ONE,        /* 1: a special handle, an address in no page */
	STALE,      /* what was valid until a call ended it */
	FOREIGN,    /* a valid handle of another type */
	MISALIGNED, /* a valid one, or a size, plus 1 */
	HUGE_SIZE,  /* 2^62: no card has it */
	ALL_ONES,
	CLASSES
};

enum kind {
	SCALAR,
	HANDLE,   /* opaque: a pointer, or a device address */
	POINTER,  /* to anything that is not text */
	TEXT,     /* const char * */
	CALLBACK, /* a function of the program's */
	LOCATION, /* CUmemLocation by value: 8 bytes, in a register */
	BLOB,     /* 64 bytes by value: on the stack */
};

struct param {
	char type[NAME_SIZE]; /* without const, struct and stars */
	char name[NAME_SIZE];
	enum kind kind;
	unsigned int stars;
	bool is_const;
	unsigned int bytes; /* of a scalar, or of what the pointer points to where that is a scalar; else 8 */
};

struct function {
	const char *name, *params_text;
	bool is_nvml;
	enum { ALL_ARGUMENTS, GOOD_ARGUMENTS, LEFT_OUT } calm_use;
	void *address; /* NULL: this driver lacks it */
	struct param params[PARAMS_MAX];
	unsigned int params_n;
};

/* functions.c. All that the driver's tables and NVML's tell of, each once. */
extern struct function *functions;
extern unsigned int functions_n;
void functions_load(void);
struct function *function_find(const char *name); /* must be there */
/* "TYPE name, TYPE name": of a function's parameters, or of a structure's fields. */
unsigned int parse_params(const char *text, struct param *params, unsigned int most);

/* objects.c: what calls made, in the order in which they did. */
struct object {
	char type[NAME_SIZE];
	uint64_t value;
	bool is_live;
	char text[96]; /* of a TEXT */
};

void objects_add(const char *type, uint64_t value);
void objects_add_text(const char *text);
void objects_end(const char *type, uint64_t value);
/* All of the type are none any more, not even stale ones. */
void objects_forget(const char *type);
/* One of a type, or of any other type where that is said; NULL: there is none. */
const struct object *objects_pick(const char *type, bool is_live, bool other_type);
unsigned int object_number(const struct object *o);
/* What a word is called: an object, an address within one or of the process, or a plain number. */
void describe_word(uint64_t word, char *text, size_t size);

/* arguments.c */
struct argument {
	uint64_t word;
	unsigned char blob[64];
	void *window; /* what the driver may write, compared before and after; NULL: nothing */
	char text[512];
};

#define WINDOW_BYTES 4096
void arguments_open(void);
void argument_make(const struct function *f, unsigned int i, enum class class, struct argument *a);
/* So that a call compares nothing of the one before it. */
void window_fill(void *window, unsigned int slot);
void *window_of(unsigned int slot);

/* random.c: deterministic. */
void random_seed(uint64_t seed);
uint64_t random_below(uint64_t n);
