/* Replaces the Kubernetes client: the test looks at one call at a time and answers it. Alarms are noted and never ring. */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kube/client/kube_client.h"

static struct kube_call {
	char method[8], path[512];
	json_t *body;
	kube_done done; /* NULL: no call is under way */
	void *data;
} call;
static struct alarm *ringing; /* NULL: none is set */

struct kube_call *kube_call_start(struct kube_client *client, const struct kube_request *request,
				  kube_line line, kube_done done, void *data)
{
	assert_null(call.done);
	call = (struct kube_call){ .body = request->body ? json_loads(request->body, 0, NULL) : NULL,
				   .done = done,
				   .data = data };
	snprintf(call.method, sizeof(call.method), "%s", request->method);
	snprintf(call.path, sizeof(call.path), "%s", request->path);
	return &call;
}

struct kube_call *kube_call_drop(struct kube_call *dropped)
{
	if (dropped) {
		json_decref(call.body);
		call = (struct kube_call){ 0 };
	}
	return NULL;
}

struct reactor *kube_client_reactor(struct kube_client *client)
{
	return NULL;
}

void alarm_set(struct reactor *reactor, struct alarm *alarm, uint64_t in_ns)
{
	ringing = alarm;
}

void alarm_clear(struct reactor *reactor, struct alarm *alarm)
{
	ringing = NULL;
}

static void expect_call(const char *method, const char *path)
{
	assert_non_null(call.done);
	assert_string_equal(call.method, method);
	assert_string_equal(call.path, path);
}

/* Answers the call under way with this HTTP status and object, which the test still owns. */
static void answer_call(int status, json_t *object)
{
	struct kube_call was = call;
	struct kube_answer reply = { .status = status, .object = object };
	if (status >= 300)
		error_set(&reply.err, EIO, "%d", status);
	call = (struct kube_call){ 0 };
	was.done(was.data, &reply);
	json_decref(was.body);
}
