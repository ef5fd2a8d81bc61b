/*
 * Uses liballot-client as a program would: lists, changes, pauses. Prints what it saw as lines "name value".
 *
 *     use_client RUN_DIR TENANT
 */
#include <allot-client.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct allot_error err;

static void check(int r, const char *what)
{
	if (r == 0)
		return;
	fprintf(stderr, "%s: %d: %s\n", what, r, err.text);
	exit(1);
}

static void print_device(const allot_device *device)
{
	uint64_t used = 0;
	int r = allot_device_memory_used_bytes(device, &used);

	printf("device %d %s %s %llu %llu %d\n", allot_device_index(device),
	       allot_device_uuid(device), allot_device_name(device),
	       (unsigned long long)allot_device_memory_bytes(device), (unsigned long long)used, r);
	printf("device-state %.0f %.0f %llu %s %d\n", allot_device_busy_pct(device),
	       allot_device_promised_cores_pct(device),
	       (unsigned long long)allot_device_promised_bytes(device),
	       allot_device_fault(device) ? allot_device_fault(device) : "healthy",
	       allot_device_is_cordoned(device));
}

static void print_share(const allot_share *share)
{
	printf("share %d %llu %d %llu %g %g %g\n", allot_share_device_index(share),
	       (unsigned long long)allot_share_memory_quota_bytes(share),
	       allot_share_memory_is_given(share),
	       (unsigned long long)allot_share_memory_used_bytes(share),
	       allot_share_cores_pct(share), allot_share_cores_limit_pct(share),
	       allot_share_cores_limit_now_pct(share));
	printf("share-got %g %g %g %llu\n", allot_share_got_1s_pct(share),
	       allot_share_got_60s_pct(share), allot_share_waited_s(share),
	       (unsigned long long)allot_share_denied(share));
}

static void print_list(allot_client *client, const char *name)
{
	allot_list *list;
	const allot_tenant *tenant;

	check(allot_client_list(client, &list, &err), "list");
	for (size_t i = 0; i < allot_list_device_count(list); i++)
		print_device(allot_list_device(list, i));
	if (allot_list_device(list, allot_list_device_count(list)) ||
	    allot_list_find_tenant(list, "nobody") || !strstr(allot_list_json(list), "\"tenants\""))
		exit(2);
	tenant = allot_list_find_tenant(list, name);
	if (!tenant || allot_list_find_tenant(list, allot_tenant_id(tenant)) != tenant)
		exit(3);
	printf("tenant %s %s %u %d\n", allot_tenant_name(tenant), allot_tenant_state(tenant),
	       allot_tenant_uid(tenant), allot_tenant_priority(tenant));
	for (size_t i = 0; i < allot_tenant_share_count(tenant); i++)
		print_share(allot_tenant_share(tenant, i));
	allot_list_free(list);
}

static void refuse_values(allot_change *change)
{
	if (allot_change_memory_bytes(change, -2, 1) != -EINVAL ||
	    allot_change_memory_bytes(change, 0, 0) != -EINVAL ||
	    allot_change_cores_pct(change, 0, 101) != -EINVAL ||
	    allot_change_cores_pct(change, 0, NAN) != -EINVAL ||
	    allot_change_cores_limit_pct(change, 0, 0) != -EINVAL ||
	    allot_change_priority(change, 101) != -EINVAL)
		exit(4);
}

static void change(allot_client *client, const char *name)
{
	allot_change *change = allot_change_new();

	refuse_values(change);
	check(allot_change_memory_bytes(change, 0, 1ULL << 30), "memory");
	check(allot_change_memory_bytes(change, 0, 3ULL << 30), "memory");
	check(allot_change_cores_pct(change, 0, 20), "cores");
	check(allot_change_cores_limit_pct(change, 1, 70), "limit");
	check(allot_change_priority(change, 7), "priority");
	check(allot_change_elastic(change, 0), "elastic");
	check(allot_client_set(client, name, change, &err), "set");
	printf("warnings %s\n", allot_client_warnings(client));
	printf("set-nobody %d", allot_client_set(client, "nobody", change, &err));
	printf(" %d %s\n", err.code, err.text);
	allot_change_free(change);
}

int main(int argc, char **argv)
{
	allot_client *client;
	char *reply;

	if (argc < 3)
		return 2;
	printf("nowhere %d", allot_client_open("/nowhere", NULL, &client, &err));
	printf(" %s\n", err.text);
	check(allot_client_open(argv[1], NULL, &client, &err), "open");
	printf("daemon %s\n", allot_client_daemon(client));
	print_list(client, argv[2]);
	change(client, argv[2]);
	check(allot_client_pause(client, argv[2], 0, &err), "pause");
	printf("flags %d\n", allot_client_pause(client, argv[2], 8, &err));
	print_list(client, argv[2]);
	check(allot_client_resume(client, argv[2], &err), "resume");
	check(allot_client_request(client, "hello", NULL, &reply, &err), "hello");
	printf("hello %d\n", strstr(reply, "\"ok\":true") != NULL);
	allot_free(reply);
	printf("members %d\n", allot_client_request(client, "hello", "[]", NULL, &err));
	allot_client_close(client);
	allot_client_close(NULL);
	allot_list_free(NULL);
	allot_change_free(NULL);
	allot_free(NULL);
	return 0;
}
