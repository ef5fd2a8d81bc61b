#include "library/loader/known.h"

#include <stdatomic.h>
#include <string.h>

#include "library/loader/names.h"
#include "library/sys/sys.h"

#define PER_THREAD_STREAM 2 /* a flag of cuGetProcAddress */
#define FORMS (sizeof(names_forms) / sizeof(names_forms[0]))

struct known_form {
	uint16_t since; /* CUDA version that introduced this form, / 10 */
	bool is_ours;   /* this library's hook, not the driver's function */
	/* Relative to table.base[is_ours]; 0 if the driver lacks the function. */
	int32_t offset;
};

/* The generated tables of names.h, with the addresses of one driver. */
struct table {
	uintptr_t base[2];
	/* The CUDA version of the newest function that the driver has. */
	int version;
	struct known_form form[FORMS];
	struct names_first first[NAMES_COUNT + 1];
	uint64_t place[NAMES_TABLE_SIZE];
};

/* If a program loads the driver anew, the previous table stays, because a thread may still be reading it. */
static struct table of_drivers[2];
static const struct table *_Atomic newest;

void *known_passed[NAMES_FORWARDS];

static struct known_form find_form(const struct elf_object *driver, void *(*hook_of_row)(size_t row),
				   const struct names_form *n, const struct table *t)
{
	struct known_form form = { .since = n->since, .is_ours = n->row >= 0 };
	void *found = n->row >= 0 ? hook_of_row((size_t)n->row)
				  : elf_symbol_hashed(driver, names_text + n->text, n->gnu_hash);
	if (n->row < 0)
		__atomic_store_n(&known_passed[-1 - n->row], found, __ATOMIC_RELAXED);
	intptr_t offset = found ? (intptr_t)((uintptr_t)found - t->base[form.is_ours]) : 0;

	form.offset = offset == (int32_t)offset ? (int32_t)offset : 0;
	return form;
}

void known_fill(const struct elf_object *driver, void *(*hook_of_row)(size_t row))
{
	const struct table *now = atomic_load_explicit(&newest, memory_order_relaxed);
	struct table *t = &of_drivers[now == &of_drivers[0]];

	t->base[false] = driver->base;
	t->base[true] = (uintptr_t)known_fill;
	t->version = 0;
	for (size_t i = 0; i < FORMS; i++) {
		t->form[i] = find_form(driver, hook_of_row, &names_forms[i], t);
		if (t->form[i].offset && t->form[i].since * 10 > t->version)
			t->version = t->form[i].since * 10;
	}
	memcpy(t->first, names_first, sizeof(t->first));
	memcpy(t->place, names_table, sizeof(t->place));
	atomic_store_explicit(&newest, t, memory_order_release);
}

static int number_of(const uint64_t *place, uint64_t hash)
{
	uint64_t there;

	for (uint64_t i = hash; (there = place[i % NAMES_TABLE_SIZE]); i++)
		if (!((there ^ hash) & ~NAMES_NUMBER_MASK))
			return (int)(there & NAMES_NUMBER_MASK) - 1;
	return -1;
}

bool known_is_hooked(uint64_t hash)
{
	return number_of(names_table, hash) >= NAMES_PASSED;
}

enum known_answer known_look_up(uint64_t hash, int version, cuuint64_t flags, void **ret_function)
{
	const struct table *t = atomic_load_explicit(&newest, memory_order_acquire);

	/* Only the driver can answer for flags or versions that the table lacks, and for negative versions. */
	if (unlikely(!t || flags > PER_THREAD_STREAM || version < 0 || version > t->version))
		return KNOWN_NOT;
	int number = number_of(t->place, hash);
	if (unlikely(number < 0))
		return KNOWN_NOT;

	const struct names_first *first = &t->first[number];
	unsigned at = first->form, end = first->twin;
	if (flags == PER_THREAD_STREAM && first->twin < first[1].form) {
		at = first->twin;
		end = first[1].form;
	}
	if (unlikely(at == end))
		return KNOWN_NOT; /* no form is known: the name is of a newer CUDA */
	/* The newest form up to `version`. If there is none, the oldest form tells whether the driver has the name. */
	while (at < end && t->form[at].since * 10 > version)
		at++;
	bool is_there = at < end;
	const struct known_form *form = &t->form[is_there ? at : end - 1];
	if (unlikely(!form->offset))
		return KNOWN_NOT;
	if (!is_there)
		return KNOWN_TOO_NEW;
	*ret_function = (void *)(t->base[form->is_ours] + (uintptr_t)(intptr_t)form->offset);
	return KNOWN_FOUND;
}
