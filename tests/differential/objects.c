#include "calls.h"

#include <stdio.h>
#include <string.h>

#define OBJECTS_MAX 512
#define NOWHERE 0x5a0000
#define OBJECT_SPAN (64u << 10) /* an address so far within one is told from it */

static struct object objects[OBJECTS_MAX];
static unsigned int objects_n;

/* An address that comes back is no longer stale. It may do so in one of the two processes alone, and what is picked must not
 * depend on that: what was there is at an address then where nothing ever is. */
static void move_stale(uint64_t value)
{
	for (unsigned int i = 0; i < objects_n; i++)
		if (!objects[i].is_live && objects[i].value == value)
			objects[i].value = NOWHERE;
}

void objects_add(const char *type, uint64_t value)
{
	struct object *o = &objects[objects_n];

	for (unsigned int i = 0; i < objects_n; i++)
		if (objects[i].is_live && objects[i].value == value && !strcmp(objects[i].type, type))
			return;
	if (objects_n == OBJECTS_MAX || !value)
		return;
	move_stale(value);
	snprintf(o->type, sizeof(o->type), "%s", type);
	o->value = value;
	o->is_live = true;
	objects_n++;
}

void objects_add_text(const char *text)
{
	struct object *o = &objects[objects_n];

	for (unsigned int i = 0; i < objects_n; i++)
		if (!strcmp(objects[i].type, "text") && !strcmp(objects[i].text, text))
			return;
	if (objects_n == OBJECTS_MAX)
		return;
	snprintf(o->type, sizeof(o->type), "text");
	snprintf(o->text, sizeof(o->text), "%s", text);
	o->is_live = true;
	objects_n++;
}

void objects_end(const char *type, uint64_t value)
{
	for (unsigned int i = 0; i < objects_n; i++)
		if (objects[i].value == value && !strcmp(objects[i].type, type))
			objects[i].is_live = false;
}

void objects_forget(const char *type)
{
	for (unsigned int i = 0; i < objects_n; i++)
		if (!strcmp(objects[i].type, type))
			objects[i].value = 0;
}

static bool fits(const struct object *o, const char *type, bool is_live, bool other_type)
{
	return o->is_live == is_live && !strcmp(o->type, type) != other_type &&
	       (o->value || !strcmp(o->type, "text"));
}

const struct object *objects_pick(const char *type, bool is_live, bool other_type)
{
	unsigned int n = 0, chosen;

	for (unsigned int i = 0; i < objects_n; i++)
		n += fits(&objects[i], type, is_live, other_type);
	if (!n)
		return NULL;
	chosen = (unsigned int)random_below(n);
	for (unsigned int i = 0; i < objects_n; i++)
		if (fits(&objects[i], type, is_live, other_type) && !chosen--)
			return &objects[i];
	return NULL;
}

unsigned int object_number(const struct object *o)
{
	return (unsigned int)(o - objects);
}

static bool is_address(uint64_t word)
{
	return word >= 1ull << 46 && word < 1ull << 47;
}

void describe_word(uint64_t word, char *text, size_t size)
{
	const struct object *in = NULL;

	for (unsigned int i = 0; i < objects_n; i++) {
		const struct object *o = &objects[i];

		if (o->value && o->value == word) {
			snprintf(text, size, "%s#%u", o->type, i);
			return;
		}
		if (!strcmp(o->type, "CUdeviceptr") && o->is_live && word > o->value &&
		    word - o->value < OBJECT_SPAN && (!in || o->value > in->value))
			in = o;
	}
	if (in && is_address(word))
		snprintf(text, size, "%s#%u+%#llx", in->type, object_number(in),
			 (unsigned long long)(word - in->value));
	else if (is_address(word))
		snprintf(text, size, "address");
	else
		snprintf(text, size, "%#llx", (unsigned long long)word);
}
