/* When a capture has ended, and when it continues. */
#include "../test.h"

#include "library/launch/captures.h"
#include "library/launch/inflight/inflight.h"

#define STREAM ((CUstream)0x100)
#define OTHER ((CUstream)0x200)
#define CONTEXT ((CUcontext)0xc0)

struct real_driver real;
static int under_way;
static CUstreamCaptureStatus status;
static CUstream asked;

void inflight_capture_begins(void)
{
	under_way++;
}

void inflight_capture_ended(void)
{
	under_way--;
}

static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *ret_status)
{
	asked = stream;
	*ret_status = status;
	return CUDA_SUCCESS;
}

static CUresult get_context(CUstream stream, CUcontext *ret_context)
{
	*ret_context = CONTEXT;
	return CUDA_SUCCESS;
}

static int start(void **state)
{
	real.cuStreamIsCapturing = is_capturing;
	real.cuStreamGetCtx = get_context;
	captures_reset();
	under_way = 0;
	return 0;
}

static void begin(CUstream stream)
{
	captures_begin();
	captures_began(stream, CUDA_SUCCESS);
}

static void test_what_does_not_begin(void **state)
{
	captures_begin();
	assert_int_equal(captures_began(STREAM, CUDA_ERROR_ILLEGAL_STATE), CUDA_ERROR_ILLEGAL_STATE);
	assert_int_equal(under_way, 0);
}

static void test_an_error_that_is_no_end(void **state)
{
	static const CUresult errors[] = { CUDA_ERROR_INVALID_VALUE,
					   CUDA_ERROR_INVALID_HANDLE,
					   CUDA_ERROR_ILLEGAL_STATE,
					   CUDA_ERROR_INVALID_CONTEXT,
					   CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
					   CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD };

	begin(STREAM);
	status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		captures_end_called(STREAM, errors[i]);
		assert_int_equal(under_way, 1);
	}
	captures_end_called(STREAM, CUDA_SUCCESS);
	assert_int_equal(under_way, 0);
}

static void test_one_that_was_spoilt_ends(void **state)
{
	begin(NULL); /* the thread's own stream */
	status = CU_STREAM_CAPTURE_STATUS_NONE;
	captures_end_called(NULL, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	assert_ptr_equal(asked, CU_STREAM_PER_THREAD);
	assert_int_equal(under_way, 0);
}

static void test_the_end_of_its_stream(void **state)
{
	begin(STREAM);
	captures_stream_gone(OTHER);
	assert_int_equal(under_way, 1);
	captures_stream_gone(STREAM);
	assert_int_equal(under_way, 0);
	/* A stream that had one which has ended. */
	begin(STREAM);
	captures_end_called(STREAM, CUDA_SUCCESS);
	captures_stream_gone(STREAM);
	assert_int_equal(under_way, 0);
}

static void test_the_end_of_its_context(void **state)
{
	begin(STREAM);
	begin(OTHER);
	captures_context_gone((CUcontext)0xc1);
	assert_int_equal(under_way, 2);
	captures_context_gone(CONTEXT);
	assert_int_equal(under_way, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_what_does_not_begin, start),
		cmocka_unit_test_setup(test_an_error_that_is_no_end, start),
		cmocka_unit_test_setup(test_one_that_was_spoilt_ends, start),
		cmocka_unit_test_setup(test_the_end_of_its_stream, start),
		cmocka_unit_test_setup(test_the_end_of_its_context, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
