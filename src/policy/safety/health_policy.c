#include "policy/safety/health_policy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NVIDIA, "XID Errors" (docs.nvidia.com/deploy/xid-errors). An Xid that a program causes leaves the GPU as it is. */
static const struct health_xid xids[] = {
	{ 13, HEALTH_OF_PROGRAM, "graphics engine exception" },
	{ 31, HEALTH_OF_PROGRAM, "memory page fault" },
	{ 43, HEALTH_OF_PROGRAM, "a program's work was stopped" },
	{ 45, HEALTH_OF_PROGRAM, "a program's channels were cleaned up" },
	{ 48, HEALTH_BAD, "double-bit ECC error" },
	{ 61, HEALTH_BAD, "internal microcontroller breakpoint" },
	{ 62, HEALTH_BAD, "internal microcontroller halt" },
	{ 63, HEALTH_NOTED, "memory is remapped at the next reset" },
	{ 64, HEALTH_BAD, "memory could not be remapped" },
	{ 68, HEALTH_OF_PROGRAM, "video decoder exception" },
	{ 69, HEALTH_OF_PROGRAM, "graphics engine class error" },
	{ 74, HEALTH_BAD, "NVLink error" },
	{ 79, HEALTH_LOST, "fallen off the bus" },
	{ 92, HEALTH_NOTED, "many single-bit ECC errors" },
	{ 94, HEALTH_NOTED, "contained memory error: its program was ended" },
	{ 95, HEALTH_BAD, "uncontained memory error" },
	{ 109, HEALTH_OF_PROGRAM, "context switch timed out" },
	{ 119, HEALTH_BAD, "GSP does not answer" },
	{ 120, HEALTH_BAD, "GSP error" },
	{ 140, HEALTH_BAD, "unrecovered ECC error" },
	{ 143, HEALTH_BAD, "initialization failed" },
};

const struct health_xid *health_find_xid(uint64_t number)
{
	for (size_t i = 0; i < sizeof(xids) / sizeof(xids[0]); i++)
		if (xids[i].number == number)
			return &xids[i];
	return NULL;
}

int health_parse_ignored(const char *text, struct health_ignored *ret, struct error *err)
{
	struct health_ignored list = { 0 };
	if (!strcmp(text, "none")) {
		*ret = list;
		return 0;
	}
	for (const char *at = text;; at++) {
		char *end;
		unsigned long number = strtoul(at, &end, 10);
		if (*at < '0' || *at > '9' || number == 0 || number > 99999 ||
		    (*end && *end != ',') || list.count == HEALTH_IGNORED_MAX)
			return error_set(
				err, EINVAL,
				"'%.40s': must be none, or at most %d Xid numbers separated by "
				"commas, such as 43,45",
				text, HEALTH_IGNORED_MAX);
		list.number[list.count++] = (unsigned)number;
		at = end;
		if (!*at)
			break;
	}
	*ret = list;
	return 0;
}

static bool is_ignored(const struct health_ignored *ignored, uint64_t number)
{
	for (unsigned i = 0; i < ignored->count; i++)
		if (ignored->number[i] == number)
			return true;
	return false;
}

static bool update(struct health *h, const struct health_time *when)
{
	bool is_bad = h->has_fault || h->is_lost || h->is_failing || h->is_silent;
	if (is_bad == h->is_bad)
		return false;
	h->is_bad = is_bad;
	h->since_ns = when->now_ns;
	h->since_s = when->now_s;
	return true;
}

static bool note_fault(struct health *h, const char *text, const struct health_time *when)
{
	/* Keep the text of the first fault, which is nearest to the cause. */
	if (!h->has_fault)
		snprintf(h->fault, sizeof(h->fault), "%s", text);
	h->has_fault = true;
	h->fault_ns = when->now_ns;
	return update(h, when);
}

bool health_note_xid(struct health *h, uint64_t number, const struct health_ignored *ignored,
		     const struct health_time *when)
{
	const struct health_xid *xid = health_find_xid(number);
	char text[HEALTH_REASON_MAX];
	if (is_ignored(ignored, number) ||
	    (xid && (xid->effect == HEALTH_OF_PROGRAM || xid->effect == HEALTH_NOTED)))
		return false;
	if (xid && xid->effect == HEALTH_LOST) {
		h->is_lost = true;
		h->answers = 0;
		return update(h, when);
	}
	snprintf(text, sizeof(text), "Xid %" PRIu64 ": %s", number,
		 xid ? xid->what
		     : "unknown to allot, so it counts as a fault of the GPU (health_ignore_xids "
		       "can exempt it)");
	return note_fault(h, text, when);
}

bool health_note_ecc(struct health *h, const struct health_time *when)
{
	return note_fault(h, "double-bit ECC error", when);
}

bool health_note_answer(struct health *h, enum health_answer answer, const struct health_time *when)
{
	if (answer == HEALTH_ANSWERED) {
		h->failures = 0;
		if (++h->answers >= HEALTH_ANSWERS)
			h->is_lost = h->is_failing = h->is_silent = false;
		return update(h, when);
	}
	h->answers = 0;
	h->is_lost |= answer == HEALTH_SAYS_LOST;
	h->is_silent |= answer == HEALTH_SILENT;
	h->is_failing |= answer == HEALTH_FAILED && ++h->failures >= HEALTH_FAILURES;
	return update(h, when);
}

bool health_clear_fault(struct health *h, const struct health_time *when)
{
	h->has_fault = false;
	return update(h, when);
}

bool health_pass_time(struct health *h, uint64_t recover_ns, const struct health_time *when)
{
	if (!h->has_fault || !recover_ns || when->now_ns < h->fault_ns ||
	    when->now_ns - h->fault_ns < recover_ns)
		return false;
	return health_clear_fault(h, when);
}

void health_reason(const struct health *h, char ret_text[HEALTH_REASON_MAX])
{
	snprintf(ret_text, HEALTH_REASON_MAX, "%s",
		 h->is_lost      ? "the driver reports that the GPU is lost"
		 : h->has_fault  ? h->fault
		 : h->is_silent  ? "the driver does not answer"
		 : h->is_failing ? "calls to the driver about this GPU fail"
				 : "");
}
