/* What a tenant's socket tells its own processes of the tenant, as `allot doctor` asks in a container. Main thread only. */
#ifndef ALLOT_NODE_ABOUT_H
#define ALLOT_NODE_ABOUT_H

#include <stdbool.h>
#include <stddef.h>

struct tenant;

#define ABOUT_QUESTION_MAX 64

/* Is it {"version":1,"op":"tenant"}? Every other message on that socket begins with another byte. Pure. */
bool about_is_question(const char *message, size_t size);
/* The answer (docs/protocol.md), to be freed; NULL: no memory. */
char *about_tenant(struct tenant *tenant);

#endif
