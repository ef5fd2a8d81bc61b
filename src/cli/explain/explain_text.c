#include "cli/explain/explain_text.h"

#include <string.h>

#include "base/json.h"
#include "cli/format.h"

#define MIB_BITS 20

json_int_t explain_number(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

const char *explain_word(const json_t *object, const char *name)
{
	return json_string_or(object, name, "");
}

void explain_mib(json_int_t mib, char text[EXPLAIN_AMOUNT_MAX])
{
	char amount[FORMAT_MAX];
	format_bytes((uint64_t)(mib > 0 ? mib : 0) << MIB_BITS, amount);
	snprintf(text, EXPLAIN_AMOUNT_MAX, "%s", amount);
}

void explain_memory(const json_t *ask, char text[EXPLAIN_AMOUNT_MAX])
{
	if (json_object_get(ask, "memory_mib"))
		explain_mib(explain_number(ask, "memory_mib"), text);
	else if (explain_number(ask, "memory_pct") == 100)
		snprintf(text, EXPLAIN_AMOUNT_MAX, "all of the memory");
	else
		snprintf(text, EXPLAIN_AMOUNT_MAX, "%d %% of the memory",
			 (int)explain_number(ask, "memory_pct"));
}

void explain_count(json_int_t count, char text[EXPLAIN_AMOUNT_MAX])
{
	char digits[32];
	int length = snprintf(digits, sizeof(digits), "%lld", (long long)count), at = 0;
	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			text[at++] = ',';
		text[at++] = digits[i];
	}
	text[at] = '\0';
}

const json_t *explain_request(const json_t *explanation, json_int_t container)
{
	const json_t *list = json_object_get(explanation, "asks");
	for (size_t i = 0; i < json_array_size(list); i++)
		if (explain_number(json_array_get(list, i), "container") == container)
			return json_array_get(list, i);
	return NULL;
}

const char *explain_container(const json_t *explanation, json_int_t container,
			      char text[EXPLAIN_AMOUNT_MAX])
{
	const json_t *names = json_object_get(explanation, "containers");
	const char *name = json_string_value(json_array_get(names, (size_t)container));
	if (name)
		snprintf(text, EXPLAIN_AMOUNT_MAX, "%s", name);
	else
		snprintf(text, EXPLAIN_AMOUNT_MAX, "container %lld", (long long)container);
	return text;
}

struct tally {
	json_int_t all, fit;
};

static struct tally tally_nodes(const json_t *explanation)
{
	const json_t *list = json_object_get(explanation, "nodes");
	struct tally t = { 0 };
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *verdict = explain_word(json_array_get(list, i), "verdict");
		t.fit += !strcmp(verdict, "fits");
		t.all++;
	}
	return t;
}

bool explain_has_room(const json_t *explanation)
{
	return tally_nodes(explanation).fit > 0;
}

static void write_binding(const json_t *e, FILE *out)
{
	const json_t *binding = json_object_get(e, "binding");
	json_int_t before = explain_number(binding, "pods_before");
	const char *lock = explain_word(binding, "lock"), *holder = strchr(lock, ',');
	const char *pod = holder ? strchr(holder + 1, ',') : NULL;
	char count[EXPLAIN_AMOUNT_MAX];
	if (!binding) {
		if (json_object_get(e, "held_for_s"))
			fprintf(out,
				"waits: node %s is chosen and its GPUs are reserved for %lld s; it is not bound yet",
				explain_word(e, "on"), (long long)explain_number(e, "held_for_s"));
		else
			fprintf(out, "waits: node %s is chosen; it is not bound yet",
				explain_word(e, "on"));
		if (*explain_word(e, "gang"))
			fprintf(out, "; %s", explain_word(e, "gang"));
		return;
	}
	fprintf(out, "waits: node %s is chosen, and it is being bound",
		explain_word(binding, "node"));
	if (pod)
		fprintf(out, "; the node is still locked for pod %.*s/%s", (int)(pod - holder - 1),
			holder + 1, pod + 1);
	else if (*lock)
		fputs("; the node is still locked (annotation hami.io/mutex.lock) for another "
		      "pod, which the lock does not name",
		      out);
	explain_count(before, count);
	if (before)
		fprintf(out, "; %s pod%s of that node %s before it", count, before == 1 ? "" : "s",
			before == 1 ? "goes" : "go");
}

static void write_waiting(const json_t *e, FILE *out)
{
	const struct tally t = tally_nodes(e);
	char all[EXPLAIN_AMOUNT_MAX], fit[EXPLAIN_AMOUNT_MAX];
	explain_count(t.all, all);
	explain_count(t.fit, fit);
	const json_t *first = json_array_get(json_object_get(e, "nodes"), 0);
	if (*explain_word(e, "why"))
		fprintf(out, "waits: %s", explain_word(e, "why"));
	else if (!json_object_get(e, "asks") && !*explain_word(e, "broken"))
		fprintf(out, "waits");
	else if (*explain_word(e, "broken"))
		fprintf(out, "waits: its request is not valid: %s", explain_word(e, "broken"));
	else if (*explain_word(e, "gang"))
		fprintf(out, "waits: %s", explain_word(e, "gang"));
	else if (!json_array_size(json_object_get(e, "asks")))
		fprintf(out, "waits, but requests no GPU");
	else if (!t.all)
		fprintf(out, "waits: no node reports GPUs");
	else if (json_object_get(first, "card"))
		fprintf(out, "waits; node %s %s", explain_word(first, "node"),
			t.fit ? "has the requested GPUs free"
			      : "does not have the requested GPUs free");
	else if (!t.fit)
		fprintf(out, "waits: none of %s node%s has the requested GPUs free", all,
			t.all == 1 ? "" : "s");
	else
		fprintf(out, "waits, though %s of %s nodes have enough free GPUs", fit, all);
}

static void write_bound(const json_t *e, FILE *out)
{
	const char *phase = explain_word(e, "bind_phase");
	fprintf(out, "is on node %s", explain_word(e, "on"));
	if (!strcmp(phase, "allocating"))
		fprintf(out, ", whose device plugin has not given it its GPUs yet");
	else if (!strcmp(phase, "failed"))
		fprintf(out, ", whose device plugin could not give it its GPUs");
	if (*explain_word(e, "why"))
		fprintf(out, ", but waits: %s", explain_word(e, "why"));
}

static void write_verdict(const json_t *e, FILE *out)
{
	const char *state = explain_word(e, "state");
	fprintf(out, "%s/%s ", explain_word(e, "namespace"), explain_word(e, "pod"));
	if (!strcmp(state, "bound"))
		write_bound(e, out);
	else if (!strcmp(state, "ending"))
		fprintf(out, "is being deleted");
	else if (!strcmp(state, "reserved"))
		write_binding(e, out);
	else
		write_waiting(e, out);
	fputc('\n', out);
}

static void write_words(const json_t *ask, const char *name, const char *before, FILE *out)
{
	const json_t *list = json_object_get(ask, name);
	for (size_t i = 0; i < json_array_size(list); i++)
		fprintf(out, "%s%s", i ? ", " : before, json_string_value(json_array_get(list, i)));
}

static void write_ask(const json_t *e, const json_t *ask, FILE *out)
{
	char name[EXPLAIN_AMOUNT_MAX], memory[EXPLAIN_AMOUNT_MAX];
	json_int_t cards = explain_number(ask, "cards"), cores = explain_number(ask, "cores_pct");
	const char *kind = explain_word(ask, "kind");
	explain_memory(ask, memory);
	fprintf(out, "  %s%s requests %lld GPU%s with %s",
		explain_container(e, explain_number(ask, "container"), name),
		!strcmp(kind, "init")      ? " (init)"
		: !strcmp(kind, "sidecar") ? " (sidecar)"
					   : "",
		(long long)cards, cards == 1 ? "" : "s", memory);
	if (cores >= 100)
		fprintf(out, ", %s alone", cards == 1 ? "it" : "each");
	else if (cores)
		fprintf(out, " and %lld %% of the time", (long long)cores);
	if (cards > 1)
		fprintf(out, cores >= 100 ? "" : " of each");
	write_words(ask, "use_uuid", "; one of ", out);
	write_words(ask, "nouse_uuid", "; none of ", out);
	fprintf(out, "%s%s\n",
		json_is_true(json_object_get(ask, "numa_bind")) ? "; on one NUMA node" : "",
		*explain_word(e, "placed_by") && cores ? ", placed by use" : "");
}

static void write_time(const json_t *share, FILE *out)
{
	if (explain_number(share, "cores_pct"))
		fprintf(out, ", %lld %% of the time", (long long)explain_number(share, "cores_pct"));
	if (explain_number(share, "lent_pct"))
		fprintf(out, ", up to %lld %% of the time while others leave it unused",
			(long long)explain_number(share, "lent_pct"));
}

static void write_claims(const json_t *e, FILE *out)
{
	const json_t *claims = json_object_get(e, "claims");
	for (size_t i = 0; i < json_array_size(claims); i++) {
		const json_t *one = json_array_get(claims, i);
		char memory[EXPLAIN_AMOUNT_MAX] = "all of the memory";
		if (json_object_get(one, "memory_mib"))
			explain_mib(explain_number(one, "memory_mib"), memory);
		fprintf(out, "  claim %s, request %s has on %s: %s", explain_word(one, "claim"),
			explain_word(one, "request"), explain_word(one, "device"), memory);
		write_time(one, out);
		fputc('\n', out);
	}
}

static void write_amounts(const json_t *e, FILE *out)
{
	const json_t *asks = json_object_get(e, "asks"), *shares = json_object_get(e, "shares");
	char name[EXPLAIN_AMOUNT_MAX], memory[EXPLAIN_AMOUNT_MAX];
	for (size_t i = 0; i < json_array_size(asks); i++)
		write_ask(e, json_array_get(asks, i), out);
	if (json_object_get(e, "use_type") || json_object_get(e, "nouse_type")) {
		fputs("  its GPUs are to be", out);
		write_words(e, "use_type", " of type ", out);
		write_words(e, "nouse_type", " not of type ", out);
		fputc('\n', out);
	}
	for (size_t i = 0; i < json_array_size(shares); i++) {
		const json_t *s = json_array_get(shares, i);
		explain_mib(explain_number(s, "memory_mib"), memory);
		fprintf(out, "  %s %s %s: %s",
			explain_container(e, explain_number(s, "container"), name),
			!strcmp(explain_word(e, "state"), "bound") ? "has on" : "will get on",
			explain_word(s, "card"), memory);
		write_time(s, out);
		fputc('\n', out);
	}
}

/* For an opportunistic pod: writes how the scheduler judged the GPU's time. */
static void write_use(const json_t *card, FILE *out)
{
	const json_t *use = json_object_get(card, "use");
	json_int_t promised = explain_number(use, "promised_pct");
	json_int_t measured = explain_number(use, "measured_pct");
	if (*explain_word(card, "use_unknown"))
		fprintf(out,
			"      judged by what is promised, since its measured use is not known: %s\n",
			explain_word(card, "use_unknown"));
	if (!use)
		return;
	fprintf(out,
		"      judged by use: %lld %% of its time is promised. Of that, %lld %% is measured: %lld %% used at the peak, %lld %% now. %lld %% is lent; so %lld %% counts as taken",
		(long long)promised, (long long)(measured < promised ? measured : promised),
		(long long)explain_number(use, "peak_pct"),
		(long long)explain_number(use, "now_pct"),
		(long long)explain_number(use, "lent_pct"),
		(long long)explain_number(use, "taken_pct"));
	if (json_object_get(use, "shut_for_s"))
		fprintf(out,
			", since after evictions it takes no pods placed by use for %lld s more",
			(long long)explain_number(use, "shut_for_s"));
	fputc('\n', out);
}

static void write_card(const json_t *e, const json_t *card, FILE *out)
{
	const json_t *pods = json_object_get(card, "pods");
	char left[EXPLAIN_AMOUNT_MAX], all[EXPLAIN_AMOUNT_MAX], name[EXPLAIN_AMOUNT_MAX];
	explain_mib(explain_number(card, "free_mib"), left);
	explain_mib(explain_number(card, "memory_mib"), all);
	const char *reason = explain_word(card, "reason");
	fprintf(out,
		"  %lld %s %s: %s of %s free, %lld of %lld %% of its time, %lld of at most %lld containers; %s\n",
		(long long)explain_number(card, "index"), explain_word(card, "uuid"),
		explain_word(card, "type"), left, all,
		(long long)explain_number(card, "free_cores_pct"),
		(long long)explain_number(card, "cores_pct"),
		(long long)explain_number(card, "slots_used"),
		(long long)explain_number(card, "slots"), *reason ? reason : "can serve the pod");
	write_use(card, out);
	for (size_t i = 0; i < json_array_size(pods); i++) {
		const json_t *pod = json_array_get(pods, i);
		explain_mib(explain_number(pod, "memory_mib"), left);
		json_int_t lent = explain_number(pod, "lent_pct");
		fprintf(out, "      %s/%s %s: %s, %lld %%%s\n", explain_word(pod, "namespace"),
			explain_word(pod, "pod"),
			explain_container(NULL, explain_number(pod, "container"), name), left,
			(long long)(lent ? lent : explain_number(pod, "cores_pct")),
			lent ? " at most, while others leave it unused" : "");
	}
}

/* Only the node that --node names has the list "card". */
static void write_cards(const json_t *e, FILE *out)
{
	const json_t *nodes = json_object_get(e, "nodes");
	for (size_t i = 0; i < json_array_size(nodes); i++) {
		const json_t *node = json_array_get(nodes, i);
		const json_t *cards = json_object_get(node, "card");
		if (!cards)
			continue;
		fprintf(out, "\nNode %s%s\n", explain_word(node, "node"),
			json_is_true(json_object_get(node, "beside_others"))
				? ", with the pod's other containers on it"
				: "");
		for (size_t k = 0; k < json_array_size(cards); k++)
			write_card(e, json_array_get(cards, k), out);
	}
}

static void write_news(const json_t *e, FILE *out)
{
	const json_t *events = json_object_get(e, "events");
	const char *scheduled = explain_word(e, "scheduled");
	if (*scheduled)
		fprintf(out, "\nkube-scheduler says:\n  %s\n", scheduled);
	if (json_array_size(events))
		fprintf(out, "\nEvents:\n");
	for (size_t i = 0; i < json_array_size(events); i++)
		fprintf(out, "  %s: %s\n", explain_word(json_array_get(events, i), "reason"),
			explain_word(json_array_get(events, i), "message"));
}

void explain_text_write(const json_t *e, FILE *out)
{
	write_verdict(e, out);
	write_amounts(e, out);
	write_claims(e, out);
	explain_groups_write(e, out);
	write_cards(e, out);
	explain_nearest_write(e, out);
	explain_help_write(e, out);
	write_news(e, out);
}
