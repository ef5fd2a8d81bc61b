/*
 * What a binding writes, in HAMi's words: annotations and label of the pod, the Binding, and the texts of events.
 * Pure; thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kube/hami/pod.h"
#include "scheduler/bind/decision.h"

/*
 * Bodies of requests, to be freed by free(); NULL: no memory. `version`: of the pod, as it was read: another one is
 * refused with 409. `shares`: the decision's, as text.
 */
char *bind_pod_patch(const struct decision *decision, const char *shares, int64_t now_s,
		     const char *version);
char *bind_failed_patch(const char *version);
char *bind_body(const struct decision *decision, const char *version);

/* Is this the pod that was decided on? -ESTALE with what it is instead. */
int bind_check_pod(const struct decision *decision, const struct kube_pod *pod, struct error *err);
/* Does the pod say that it is to get, or has got, just these shares of that node? */
bool bind_is_said(const struct decision *decision, const char *shares, const struct kube_pod *pod);

/* Of events, as HAMi has them. */
#define BIND_SUCCEED "BindingSucceed"
#define BIND_FAIL "BindingFailed"
void bind_success_text(const struct decision *decision, char *text, size_t size);
