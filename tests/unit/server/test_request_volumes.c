/*
 * test_request_volumes.c - the volumes of a create request: what is accepted, what it becomes, and
 * how the rest is refused.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/strv.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "server/failure.h"
#include "server/request_volumes.h"
#include "server/volume.h"

static struct strv allowed;

static int decode(const char *volumes, struct volumes_list *ret, struct failure *f)
{
	osb_cleanup(json_freep) struct json *body = NULL;
	osb_cleanup(mem_freep) char *text = mem_printf("{\"volumes\":%s}", volumes);
	struct err e = ERR_NONE;

	*f = FAILURE_NONE;
	*ret = (struct volumes_list){0};
	assert_int_equal(json_parse(view_of(text), 0, &body, &e), 0);
	return request_volumes(body, &allowed, ret, f);
}

#define PVC	    "\"pvc\":{\"claimName\":\"c\"}"
#define AT_M	    "\"mountPath\":\"/m\""
#define ONE(fields) "[{\"name\":\"v\"," fields "}]"
#define HOST(path)  ONE(AT_M ",\"host\":{\"path\":" path "}")
#define KEYS	    "\"accessKeyId\":\"i\",\"accessKeySecret\":\"s\""
#define OSS(fields) ONE(AT_M ",\"ossfs\":{" fields "}")
#define BUCKET	    "\"bucket\":\"buck\",\"endpoint\":\"e.example\""
#define LONG_1024                                                                                  \
	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"         \
	"0123456789abcdef0123456789abcdef0123456789abcdef"
#define TOO_LONG LONG_1024 LONG_1024 LONG_1024 LONG_1024 LONG_1024 LONG_1024 LONG_1024 LONG_1024

static const struct {
	const char *volumes;
	int status;
	const char *code, *says;
} wrong[] = {
	{"{}", 422, "SANDBOX::INVALID_PARAMETER", "volumes"},
	{"[1]", 422, "SANDBOX::INVALID_PARAMETER", "objects"},
	{"[{}]", 422, "VOLUME::INVALID_NAME", "name"},
	{"[{\"name\":7}]", 422, "SANDBOX::INVALID_PARAMETER", "name"},
	{"[{\"name\":\"\"," AT_M "," PVC "}]", 422, "VOLUME::INVALID_NAME", ""},
	{"[{\"name\":\"A\"," AT_M "," PVC "}]", 422, "VOLUME::INVALID_NAME", "'A'"},
	{"[{\"name\":\"-a\"," AT_M "," PVC "}]", 422, "VOLUME::INVALID_NAME", "-a"},
	{"[{\"name\":\"a-\"," AT_M "," PVC "}]", 422, "VOLUME::INVALID_NAME", "a-"},
	{"[{\"name\":\"a.b\"," AT_M "," PVC "}]", 422, "VOLUME::INVALID_NAME", "a.b"},
	{"[{\"name\":\"" LONG_1024 "\"," AT_M "," PVC "}]", 422, "VOLUME::INVALID_NAME", "63"},
	{ONE(PVC), 422, "VOLUME::INVALID_MOUNT_PATH", "mountPath"},
	{ONE("\"mountPath\":\"\"," PVC), 422, "VOLUME::INVALID_MOUNT_PATH", "mountPath"},
	{ONE("\"mountPath\":\"m\"," PVC), 422, "VOLUME::INVALID_MOUNT_PATH", "'/'"},
	{ONE("\"mountPath\":5," PVC), 422, "SANDBOX::INVALID_PARAMETER", "mountPath"},
	{ONE("\"mountPath\":\"/\"," PVC), 400, "VOLUME::INVALID_MOUNT_PATH", "'/'"},
	{ONE("\"mountPath\":\"//./\"," PVC), 400, "VOLUME::INVALID_MOUNT_PATH", "'/'"},
	{ONE("\"mountPath\":\"/a/../b\"," PVC), 400, "VOLUME::INVALID_MOUNT_PATH", ".."},
	{ONE("\"mountPath\":\"/proc\"," PVC), 400, "VOLUME::INVALID_MOUNT_PATH", "/proc"},
	{ONE("\"mountPath\":\"//proc/self\"," PVC), 400, "VOLUME::INVALID_MOUNT_PATH", "/proc"},
	{ONE("\"mountPath\":\"/sys/x\"," PVC), 400, "VOLUME::INVALID_MOUNT_PATH", "/sys"},
	{ONE("\"mountPath\":\"/dev/shm\"," PVC), 400, "VOLUME::INVALID_MOUNT_PATH", "/dev"},
	{ONE("\"mountPath\":\"/opt/opensandbox/\"," PVC), 400, "VOLUME::INVALID_MOUNT_PATH",
	 "/opt/opensandbox"},
	{ONE("\"mountPath\":\"/" TOO_LONG "\"," PVC), 400, "VOLUME::INVALID_MOUNT_PATH", "1023"},
	{ONE(AT_M "," PVC ",\"readOnly\":\"yes\""), 422, "SANDBOX::INVALID_PARAMETER", "readOnly"},
	{ONE(AT_M "," PVC ",\"subPath\":1"), 422, "SANDBOX::INVALID_PARAMETER", "subPath"},
	{ONE(AT_M "," PVC ",\"subPath\":\"/a\""), 400, "VOLUME::INVALID_SUB_PATH", "relative"},
	{ONE(AT_M "," PVC ",\"subPath\":\"a/../..\""), 400, "VOLUME::INVALID_SUB_PATH", ".."},
	{ONE(AT_M "," PVC ",\"subPath\":\"..\""), 400, "VOLUME::INVALID_SUB_PATH", ".."},
	{ONE(AT_M "," PVC ",\"subPath\":\"" TOO_LONG "\""), 400, "VOLUME::INVALID_SUB_PATH", ""},
	{ONE(AT_M), 422, "VOLUME::INVALID_BACKEND", "exactly one"},
	{ONE(AT_M "," PVC ",\"host\":{\"path\":\"/data\"}"), 422, "VOLUME::INVALID_BACKEND",
	 "exactly one"},
	{ONE(AT_M ",\"pvc\":\"c\""), 422, "SANDBOX::INVALID_PARAMETER", "pvc"},
	{ONE(AT_M ",\"pvc\":{}"), 422, "VOLUME::INVALID_PVC_NAME", "claimName"},
	{ONE(AT_M ",\"pvc\":{\"claimName\":\"a/b\"}"), 422, "VOLUME::INVALID_PVC_NAME", ""},
	{ONE(AT_M ",\"pvc\":{\"claimName\":\"..\"}"), 422, "VOLUME::INVALID_PVC_NAME", ""},
	{ONE(AT_M ",\"pvc\":{\"claimName\":\"c\",\"createIfNotExists\":1}"), 422,
	 "SANDBOX::INVALID_PARAMETER", "createIfNotExists"},
	{ONE(AT_M ",\"pvc\":{\"claimName\":\"c\",\"storage\":\"10G\"}"), 422,
	 "VOLUME::INVALID_BACKEND", "storage"},
	{ONE(AT_M ",\"pvc\":{\"claimName\":\"c\",\"storage\":\"1.\"}"), 422,
	 "VOLUME::INVALID_BACKEND", "storage"},
	{ONE(AT_M ",\"pvc\":{\"claimName\":\"c\",\"accessModes\":[1]}"), 422,
	 "SANDBOX::INVALID_PARAMETER", "accessModes"},
	{HOST("1"), 422, "SANDBOX::INVALID_PARAMETER", "path"},
	{HOST("null"), 422, "VOLUME::INVALID_HOST_PATH", "absolute"},
	{HOST("\"data\""), 422, "VOLUME::INVALID_HOST_PATH", "absolute"},
	{HOST("\"/data/../etc\""), 400, "VOLUME::INVALID_HOST_PATH", ".."},
	{HOST("\"/data/.\""), 400, "VOLUME::INVALID_HOST_PATH", "'.'"},
	{HOST("\"/data//x\""), 400, "VOLUME::INVALID_HOST_PATH", "'/'"},
	{HOST("\"/data/\""), 400, "VOLUME::INVALID_HOST_PATH", "'/'"},
	{HOST("\"/dataset\""), 400, "VOLUME::HOST_PATH_NOT_ALLOWED", "/dataset"},
	{HOST("\"/etc\""), 400, "VOLUME::HOST_PATH_NOT_ALLOWED", "allowed_host_paths"},
	{HOST("\"/\""), 400, "VOLUME::HOST_PATH_NOT_ALLOWED", ""},
	{HOST("\"C:\\\\data\""), 400, "VOLUME::HOST_PATH_NOT_ALLOWED", "C:"},
	{"[{\"name\":\"v\",\"mountPath\":\"/a\"," PVC "},{\"name\":\"v\",\"mountPath\":\"/b\"," PVC
	 "}]",
	 400, "VOLUME::DUPLICATE_NAME", "'v'"},
	{"[{\"name\":\"v\",\"mountPath\":\"/a\"," PVC "},{\"name\":\"w\",\"mountPath\":\"/a/\"," PVC
	 "}]",
	 400, "VOLUME::INVALID_MOUNT_PATH", "same"},
	{OSS(""), 422, "VOLUME::INVALID_OSSFS_BUCKET", "bucket"},
	{OSS("\"bucket\":\"ab\""), 422, "VOLUME::INVALID_OSSFS_BUCKET", "3"},
	{OSS("\"bucket\":\"a/../b\",\"endpoint\":\"e\""), 400, "VOLUME::INVALID_OSSFS_BUCKET", ""},
	{OSS("\"bucket\":\"abc\""), 422, "VOLUME::INVALID_OSSFS_ENDPOINT", "endpoint"},
	{OSS("\"bucket\":\"abc\",\"endpoint\":\" \""), 400, "VOLUME::INVALID_OSSFS_ENDPOINT", ""},
	{OSS("\"bucket\":\"abc\",\"endpoint\":\"-o\""), 400, "VOLUME::INVALID_OSSFS_ENDPOINT", ""},
	{OSS(BUCKET ",\"version\":\"3.0\""), 422, "VOLUME::INVALID_OSSFS_VERSION", "2.0"},
	{OSS(BUCKET ",\"options\":[\"\"]"), 400, "VOLUME::INVALID_OSSFS_OPTION", "empty"},
	{OSS(BUCKET ",\"options\":[\"-oro\"]"), 400, "VOLUME::INVALID_OSSFS_OPTION", "'-'"},
	{OSS(BUCKET ",\"options\":[\"passwd_file=/etc/shadow\"]"), 400,
	 "VOLUME::INVALID_OSSFS_OPTION", "passwd_file"},
	{OSS(BUCKET ",\"options\":[\"umask=0,logfile=x\"]"), 400, "VOLUME::INVALID_OSSFS_OPTION",
	 "logfile"},
	{OSS(BUCKET), 400, "VOLUME::INVALID_OSSFS_CREDENTIALS", "accessKeyId"},
	{OSS(BUCKET ",\"accessKeyId\":\"\",\"accessKeySecret\":\"s\""), 422,
	 "VOLUME::INVALID_OSSFS_CREDENTIALS", "empty"},
	{OSS(BUCKET ",\"accessKeyId\":\"i:j\",\"accessKeySecret\":\"s\""), 400,
	 "VOLUME::INVALID_OSSFS_CREDENTIALS", "letters"},
};

static void refuses_what_is_wrong(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct volumes_list l;
		struct failure f;

		if (decode(wrong[i].volumes, &l, &f) == 0)
			fail_msg("accepted: %s", wrong[i].volumes);
		if (f.status != wrong[i].status || strcmp(f.code, wrong[i].code) != 0 ||
		    !strstr(f.message, wrong[i].says))
			fail_msg("%s: %d %s %s", wrong[i].volumes, f.status, f.code, f.message);
		assert_int_equal(l.n, 0);
	}
}

static void takes_none(void **state)
{
	static const char *const none[] = {"null", "[]"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(none); i++) {
		struct volumes_list l;
		struct failure f;

		assert_int_equal(decode(none[i], &l, &f), 0);
		assert_int_equal(l.n, 0);
	}
}

static void reads_a_named_volume(void **state)
{
	struct volumes_list l;
	struct failure f;

	(void)state;
	assert_int_equal(decode(ONE("\"mountPath\":\"/a//b/./c/\",\"readOnly\":true,\"subPath\":"
				    "\"x//y/\",\"pvc\":{\"claimName\":\"data-1\","
				    "\"createIfNotExists\":false,\"storage\":\"1.5Gi\","
				    "\"deleteOnSandboxTermination\":true,\"storageClass\":\"fast\","
				    "\"accessModes\":[\"ReadWriteMany\"]}"),
				&l, &f),
			 0);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.v[0].kind, VOLUME_NAMED);
	assert_string_equal(l.v[0].mount_path, "/a/b/c");
	assert_string_equal(l.v[0].below, "x/y");
	assert_string_equal(l.v[0].claim, "data-1");
	assert_true(l.v[0].read_only && l.v[0].must_exist && l.v[0].remove_after);
	volumes_list_done(&l);
}

static void finds_the_allowed_directory(void **state)
{
	static const struct {
		const char *path, *sub;
		uint64_t number;
		const char *below;
	} cases[] = {
		{"/data", "", 0, ""},
		{"/data/a", "b", 0, "a/b"},
		{"/data/a/b", "", 0, "a/b"},
		{"/srv/share", "x", 1, "x"},
		{"/srv/share/deep", "", 1, "deep"},
		{"/in/side", "", 3, "side"}, /* it is listed, too, but /in is writable */
		{"/in/side/deep", "x", 3, "side/deep/x"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		osb_cleanup(mem_freep) char *text =
			mem_printf(ONE(AT_M ",\"subPath\":\"%s\",\"host\":{\"path\":\"%s\"}"),
				   cases[i].sub, cases[i].path);
		struct volumes_list l;
		struct failure f;

		assert_int_equal(decode(text, &l, &f), 0);
		assert_int_equal(l.v[0].kind, VOLUME_HOST);
		assert_int_equal(l.v[0].number, cases[i].number);
		assert_string_equal(l.v[0].below, cases[i].below);
		assert_string_equal(l.v[0].path, cases[i].path);
		volumes_list_done(&l);
	}
}

static void allows_nothing_of_the_host_by_default(void **state)
{
	osb_cleanup(json_freep) struct json *body = NULL;
	struct volumes_list l = {0};
	struct failure f = FAILURE_NONE;
	struct strv none = STRV_INIT;
	struct err e = ERR_NONE;

	(void)state;
	assert_int_equal(json_parse(VIEW("{\"volumes\":" HOST("\"/data\"") "}"), 0, &body, &e), 0);
	assert_int_equal(request_volumes(body, &none, &l, &f), -1);
	assert_string_equal(f.code, "VOLUME::HOST_PATH_NOT_ALLOWED");
}

static void reads_a_bucket(void **state)
{
	struct volumes_list l;
	struct failure f;

	(void)state;
	assert_int_equal(decode(OSS(BUCKET "," KEYS ",\"options\":[\"allow_other\","
					   "\"umask=022\"]"),
				&l, &f),
			 0);
	assert_int_equal(l.v[0].kind, VOLUME_OSSFS);
	assert_string_equal(l.v[0].bucket.version, "2.0");
	assert_string_equal(l.v[0].bucket.key_secret, "s");
	assert_int_equal(l.v[0].bucket.options.len, 2);
	volumes_list_done(&l);
}

static void comes_back_from_the_store_without_secrets(void **state)
{
	osb_cleanup(buf_done) struct buf out = BUF_INIT(1 << 20);
	osb_cleanup(json_freep) struct json *v = NULL;
	struct volumes_list l, back = {0};
	struct err e = ERR_NONE;
	struct json_writer w;
	struct failure f;

	(void)state;
	assert_int_equal(decode("[{\"name\":\"a\",\"mountPath\":\"/z\",\"readOnly\":true," PVC "},"
				"{\"name\":\"b\",\"mountPath\":\"/a\",\"host\":{\"path\":\"/data/"
				"x\"}},{\"name\":\"c\",\"mountPath\":\"/b\",\"ossfs\":{" BUCKET
				",\"accessKeyId\":\"i\",\"accessKeySecret\":\"hushhush\"}}]",
				&l, &f),
			 0);
	l.v[0].number = 42;
	l.v[0].made = true;
	json_writer_init(&w, &out);
	json_write_object(&w);
	volumes_list_format(&w, "volumes", &l);
	json_write_object_end(&w);
	assert_int_equal(json_writer_end(&w), 0);
	assert_null(strstr(buf_str(&out), "hushhush"));
	assert_int_equal(json_parse(buf_view(&out), 0, &v, &e), 0);
	volumes_list_parse(json_get(v, "volumes"), &back);
	assert_int_equal(back.n, 3);
	assert_int_equal(back.v[0].number, 42);
	assert_true(back.v[0].made && back.v[0].read_only);
	assert_string_equal(back.v[0].claim, "c");
	assert_int_equal(back.v[1].kind, VOLUME_HOST);
	assert_string_equal(back.v[1].below, "x");
	assert_string_equal(back.v[2].bucket.bucket, "buck");
	assert_null(back.v[2].bucket.key_secret);
	volumes_list_done(&l);
	volumes_list_done(&back);
}

static void says_what_could_not_be_mounted(void **state)
{
	static const struct {
		int code;
		const char *message;
		int status; /* 0 = no volume's fault */
		const char *says;
	} cases[] = {
		{-ENOMEM, "clone: no memory", 0, ""},
		{-EIO, "volumes[7]: beyond the list", 0, ""},
		{-EXDEV, "volumes[0]: 'x': it leads out", 400, "VOLUME::HOST_PATH_NOT_ALLOWED"},
		{-ELOOP, "create: volumes[0]: a link", 400, "VOLUME::HOST_PATH_NOT_ALLOWED"},
		{-EACCES, "volumes[0]: denied", 500, "VOLUME::HOST_PATH_CREATE_FAILED"},
		{-ENOTDIR, "volumes[0]: a file", 500, "VOLUME::HOST_PATH_CREATE_FAILED"},
		{-EOPNOTSUPP, "volumes[0]: cannot map", 400, "VOLUME::UNSUPPORTED_BACKEND"},
		{-ENOTDIR, "volumes[1]: no mount point", 400, "VOLUME::INVALID_MOUNT_PATH"},
		{-EXDEV, "volumes[1]: it leads out", 400, "VOLUME::INVALID_SUB_PATH"},
		{-ENOENT, "volumes[1]: there is none", 500, "VOLUME::PVC_INSPECT_FAILED"},
	};
	struct volumes_list l;
	struct failure f;

	(void)state;
	assert_int_equal(
		decode("[{\"name\":\"a\",\"mountPath\":\"/m\",\"host\":{\"path\":\"/data\"}},"
		       "{\"name\":\"b\",\"mountPath\":\"/m/n\"," PVC "}]",
		       &l, &f),
		0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		bool found;

		err_set(&e, cases[i].code, "%s", cases[i].message);
		f = FAILURE_NONE;
		found = volumes_list_failure(&l, &e, &f);
		assert_int_equal(found, cases[i].status != 0);
		assert_int_equal(f.status, cases[i].status);
		if (found)
			assert_string_equal(f.code, cases[i].says);
	}
	volumes_list_done(&l);
}

static int set_up(void **state)
{
	(void)state;
	strv_add(&allowed, "/data");
	strv_add(&allowed, "/srv/share/");
	strv_add(&allowed, "/in/side");
	strv_add(&allowed, "/in/");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	strv_done(&allowed);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_what_is_wrong),
		cmocka_unit_test(takes_none),
		cmocka_unit_test(reads_a_named_volume),
		cmocka_unit_test(finds_the_allowed_directory),
		cmocka_unit_test(allows_nothing_of_the_host_by_default),
		cmocka_unit_test(reads_a_bucket),
		cmocka_unit_test(comes_back_from_the_store_without_secrets),
		cmocka_unit_test(says_what_could_not_be_mounted),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
