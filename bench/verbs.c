#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/extender/extender.h"

static void die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	abort();
}

static struct call_args *args_of(const json_t *args)
{
	struct call_args *call = NULL;
	struct error err;
	char *text = json_dumps(args, JSON_COMPACT);
	if (!text || call_args_read(text, strlen(text), &call, &err) < 0)
		die("arguments of a verb", text ? err.text : "are no JSON");
	free(text);
	return call;
}

static json_t *answer_of(char *text)
{
	json_error_t why;
	json_t *answer = text ? json_loads(text, JSON_REJECT_DUPLICATES, &why) : NULL;
	if (!answer)
		die("answer of a verb", text ? why.text : "out of memory");
	free(text);
	return answer;
}

json_t *verbs_filter(struct model *model, const json_t *args)
{
	struct call_args *call = args_of(args);
	struct filter_answer *answer = extender_filter(model, call);
	char *text = answer ? filter_answer_text(answer) : NULL;
	filter_answer_put(answer);
	call_args_put(call);
	return answer_of(text);
}

json_t *verbs_prioritize(struct model *model, const json_t *args)
{
	struct call_args *call = args_of(args);
	char *text = extender_prioritize(model, call);
	call_args_put(call);
	return answer_of(text);
}
