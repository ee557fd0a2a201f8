/*
 * test_oci_image.c - manifests, indexes and configurations, and the confusions between them.
 */
#include <stdarg.h>
#include <stddef.h>

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "codec/oci_image.h"

#define D(c) "sha256:" c c c c c c c c c c c c c c c c
#define OCI  "application/vnd.oci.image."
#define DOCK "application/vnd.docker."

#define DESC(type, digest, size)                                                                   \
	"{\"mediaType\":\"" type "\",\"digest\":\"" digest "\",\"size\":" size "}"
#define CONFIG DESC(OCI "config.v1+json", D("aaaa"), "100")
#define LAYER  DESC(OCI "layer.v1.tar+gzip", D("bbbb"), "200")
#define MANIFEST                                                                                   \
	"{\"schemaVersion\":2,\"mediaType\":\"" OCI "manifest.v1+json\",\"config\":" CONFIG        \
	",\"layers\":[" LAYER "]}"
#define ENTRY(digest, os, arch, more)                                                              \
	"{\"mediaType\":\"" OCI "manifest.v1+json\",\"digest\":\"" digest                          \
	"\",\"size\":9,\"platform\":{\"os\":\"" os "\",\"architecture\":\"" arch "\"" more "}}"
#define V(v)	       ",\"variant\":\"" v "\""
#define INDEX(entries) "{\"schemaVersion\":2,\"manifests\":[" entries "]}"

static int parse(const char *text, const char *type, struct arena *a, struct oci_document *ret,
		 struct err *e)
{
	return oci_document_parse(view_of(text), view_of(type), a, ret, e);
}

static void reads_manifests_of_both_families(void **state)
{
	static const struct {
		const char *text, *type;
		enum oci_media layer;
	} cases[] = {
		{MANIFEST, OCI "manifest.v1+json", OCI_LAYER_GZIP},
		{MANIFEST, OCI "manifest.v1+json; charset=utf-8", OCI_LAYER_GZIP},
		{MANIFEST, "", OCI_LAYER_GZIP},
		{MANIFEST, "application/json", OCI_LAYER_GZIP},
		{"{\"schemaVersion\":2,\"config\":" DESC(
			 DOCK "container.image.v1+json", D("aaaa"),
			 "100") ",\"layers\":[" DESC(DOCK "image.rootfs.diff.tar.gzip", D("bbbb"),
						     "200") "]}",
		 DOCK "distribution.manifest.v2+json", OCI_LAYER_GZIP},
		{"{\"schemaVersion\":2,\"config\":" CONFIG
		 ",\"layers\":[" DESC(OCI "layer.v1.tar+zstd", D("bbbb"), "200") "]}",
		 OCI "manifest.v1+json", OCI_LAYER_ZSTD},
		{"{\"schemaVersion\":2,\"config\":" CONFIG
		 ",\"layers\":[" DESC(OCI "layer.v1.tar", D("bbbb"), "200") "]}",
		 OCI "manifest.v1+json", OCI_LAYER_TAR},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct oci_document doc;
		struct arena a;

		arena_init(&a, 1 << 20);
		if (parse(cases[i].text, cases[i].type, &a, &doc, &e) < 0)
			fail_msg("%zu: %s", i, e.msg);
		assert_int_equal(doc.kind, OCI_MANIFEST);
		assert_string_equal(doc.config.digest, D("aaaa"));
		assert_int_equal(doc.config.size, 100);
		assert_int_equal(doc.items_n, 1);
		assert_string_equal(doc.items[0].digest, D("bbbb"));
		assert_int_equal(doc.items[0].size, 200);
		assert_int_equal(doc.items[0].media, cases[i].layer);
		arena_done(&a);
	}
}

static const struct {
	const char *text, *type;
	int code;
	const char *word;
} refused[] = {
	{"", "", -EBADMSG, "JSON"},
	{"[]", "", -EBADMSG, "object"},
	{"{}", "", -EBADMSG, "schemaVersion"},
	{"{\"schemaVersion\":2}", "", -EBADMSG, "neither"},
	{"{\"schemaVersion\":3,\"manifests\":[]}", "", -EBADMSG, "schemaVersion"},
	{"{\"schemaVersion\":\"2\",\"manifests\":[]}", "", -EBADMSG, "schemaVersion"},
	{"{\"schemaVersion\":1,\"fsLayers\":[],\"name\":\"x\"}", "", -EOPNOTSUPP, "schema 1"},
	{"{\"schemaVersion\":2,\"fsLayers\":[]}", "", -EOPNOTSUPP, "schema 1"},
	{MANIFEST, DOCK "distribution.manifest.v1+prettyjws", -EOPNOTSUPP, "schema 1"},
	/* the transport, the member and the content disagree */
	{MANIFEST, OCI "index.v1+json", -EBADMSG, "Content-Type"},
	{INDEX(""), OCI "manifest.v1+json", -EBADMSG, "Content-Type"},
	{MANIFEST, OCI "config.v1+json", -EBADMSG, "Content-Type"},
	{"{\"schemaVersion\":2,\"mediaType\":\"" OCI "index.v1+json\",\"config\":" CONFIG
	 ",\"layers\":[]}",
	 "", -EBADMSG, "mediaType"},
	{"{\"schemaVersion\":2,\"mediaType\":\"x/y\",\"manifests\":[]}", "", -EOPNOTSUPP, "x/y"},
	{"{\"schemaVersion\":2,\"manifests\":[],\"layers\":[]}", "", -EBADMSG, "more than one"},
	{"{\"schemaVersion\":2,\"manifests\":[],\"config\":{}}", "", -EBADMSG, "more than one"},
	{"{\"schemaVersion\":2,\"layers\":[],\"fsLayers\":[]}", "", -EBADMSG, "more than one"},
	{"{\"schemaVersion\":2,\"schemaVersion\":2,\"manifests\":[]}", "", -EBADMSG, "JSON"},
	/* config and layers swapped */
	{"{\"schemaVersion\":2,\"config\":" LAYER ",\"layers\":[" CONFIG "]}", "", -EBADMSG,
	 "configuration"},
	{"{\"schemaVersion\":2,\"config\":" CONFIG ",\"layers\":[" CONFIG "]}", "", -EBADMSG,
	 "layer"},
	{"{\"schemaVersion\":2,\"config\":" CONFIG
	 ",\"layers\":[" DESC(OCI "manifest.v1+json", D("bbbb"), "1") "]}",
	 "", -EBADMSG, "layer"},
	{INDEX(LAYER), "", -EBADMSG, "manifest"},
	/* neither images nor mistakes */
	{"{\"schemaVersion\":2,\"config\":" DESC("application/vnd.oci.empty.v1+json", D("aaaa"),
						 "2") ",\"layers\":[]}",
	 "", -EOPNOTSUPP, "artifact"},
	{"{\"schemaVersion\":2,\"config\":" DESC("application/vnd.cncf.helm.config.v1+json",
						 D("aaaa"), "2") ",\"layers\":[]}",
	 "", -EOPNOTSUPP, "artifact"},
	{"{\"schemaVersion\":2,\"config\":" CONFIG
	 ",\"layers\":[" DESC(DOCK "image.rootfs.foreign.diff.tar.gzip", D("bbbb"), "1") "]}",
	 "", -EOPNOTSUPP, "distributed"},
	{"{\"schemaVersion\":2,\"config\":" CONFIG
	 ",\"layers\":[" DESC("application/x-thing", D("bbbb"), "1") "]}",
	 "", -EOPNOTSUPP, "x-thing"},
	/* descriptors */
	{"{\"schemaVersion\":2,\"layers\":[]}", "", -EBADMSG, "config"},
	{"{\"schemaVersion\":2,\"config\":" CONFIG "}", "", -EBADMSG, "layers"},
	{"{\"schemaVersion\":2,\"config\":" CONFIG ",\"layers\":{}}", "", -EBADMSG, "layers"},
	{"{\"schemaVersion\":2,\"config\":[],\"layers\":[]}", "", -EBADMSG, "config"},
	{"{\"schemaVersion\":2,\"config\":" CONFIG ",\"layers\":[1]}", "", -EBADMSG, "object"},
	{"{\"schemaVersion\":2,\"config\":" DESC(OCI "config.v1+json", "sha256:../../etc/passwd",
						 "2") ",\"layers\":[]}",
	 "", -EBADMSG, "digest"},
	{"{\"schemaVersion\":2,\"config\":" DESC(OCI "config.v1+json", D("AAAA"),
						 "2") ",\"layers\":[]}",
	 "", -EBADMSG, "digest"},
	{"{\"schemaVersion\":2,\"config\":" DESC(OCI "config.v1+json", "sha512:00",
						 "2") ",\"layers\":[]}",
	 "", -EOPNOTSUPP, "sha256"},
	{"{\"schemaVersion\":2,\"config\":" DESC(OCI "config.v1+json", D("aaaa"),
						 "-1") ",\"layers\":[]}",
	 "", -EBADMSG, "size"},
	{"{\"schemaVersion\":2,\"config\":" DESC(OCI "config.v1+json", D("aaaa"),
						 "1.5") ",\"layers\":[]}",
	 "", -EBADMSG, "size"},
	{"{\"schemaVersion\":2,\"config\":" DESC(OCI "config.v1+json", D("aaaa"),
						 "8388609") ",\"layers\":[]}",
	 "", -EFBIG, "configuration"},
};

static void refuses_what_is_not_what_it_says(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct err e = ERR_NONE;
		struct oci_document doc;
		struct arena a;

		arena_init(&a, 1 << 20);
		if (parse(refused[i].text, refused[i].type, &a, &doc, &e) != refused[i].code ||
		    !strstr(e.msg, refused[i].word))
			fail_msg("%zu: %d %s (%s)", i, e.code, e.msg, refused[i].text);
		arena_done(&a);
	}
}

static void bounds_the_number_of_layers(void **state)
{
	for (int n = OCI_LAYERS_MAX; n <= OCI_LAYERS_MAX + 1; n++) {
		osb_cleanup(buf_done) struct buf text = BUF_INIT(1 << 20);
		struct err e = ERR_NONE;
		struct oci_document doc;
		struct arena a;
		int r;

		arena_init(&a, 1 << 20);
		assert_int_equal(buf_append_str(&text, "{\"schemaVersion\":2,\"config\":" CONFIG
						       ",\"layers\":["),
				 0);
		for (int i = 0; i < n; i++)
			assert_int_equal(buf_printf(&text, "%s" LAYER, i ? "," : ""), 0);
		assert_int_equal(buf_append_str(&text, "]}"), 0);
		r = oci_document_parse(buf_view(&text), VIEW_NONE, &a, &doc, &e);
		assert_int_equal(r, n > OCI_LAYERS_MAX ? -EFBIG : 0);
		arena_done(&a);
	}
}

static void chooses_what_the_machine_can_run(void **state)
{
	/* clang-format off */
	static const char many[] = INDEX(
		ENTRY(D("0001"), "windows", "amd64", "") ","
		ENTRY(D("0002"), "linux", "arm64", V("v8")) ","
		ENTRY(D("0003"), "linux", "arm", V("v5")) ","
		ENTRY(D("0004"), "linux", "arm", V("v7")) ","
		ENTRY(D("0005"), "linux", "amd64", "") ","
		ENTRY(D("0006"), "linux", "amd64", V("v3")) ","
		ENTRY(D("0007"), "unknown", "unknown", "") ","
		ENTRY(D("0008"), "linux", "amd64", ""));
	/* clang-format on */
	static const struct {
		const char *os, *arch, *variant, *digest;
	} cases[] = {
		{"linux", "amd64", "", D("0005")},   {"linux", "x86_64", "", D("0005")},
		{"linux", "amd64", "v1", D("0005")}, {"linux", "amd64", "v2", D("0005")},
		{"linux", "amd64", "v3", D("0006")}, {"linux", "amd64", "v4", D("0006")},
		{"linux", "arm64", "", D("0002")},   {"linux", "aarch64", "v8", D("0002")},
		{"linux", "arm64", "8", D("0002")},  {"linux", "arm", "", D("0004")},
		{"linux", "arm", "v6", D("0003")},   {"linux", "arm", "v5", D("0003")},
		{"windows", "amd64", "", D("0001")}, {"linux", "riscv64", "", NULL},
		{"linux", "s390x", "", NULL},	     {"darwin", "arm64", "", NULL},
	};
	struct err e = ERR_NONE;
	struct oci_document doc;
	struct arena a;

	arena_init(&a, 1 << 20);
	assert_int_equal(parse(many, "", &a, &doc, &e), 0);
	assert_int_equal(doc.kind, OCI_INDEX);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct oci_platform want = {view_of(cases[i].os), view_of(cases[i].arch),
					    view_of(cases[i].variant)};
		const struct oci_descriptor *d = NULL;
		int r = oci_index_choose(&doc, &want, &d, &e);

		if (!cases[i].digest) {
			assert_int_equal(r, -EOPNOTSUPP);
			assert_non_null(strstr(e.msg, "linux/arm64/v8"));
			assert_null(strstr(e.msg, "unknown"));
		} else if (r < 0 || strcmp(d->digest, cases[i].digest) != 0) {
			fail_msg("%s/%s/%s: %s", cases[i].os, cases[i].arch, cases[i].variant,
				 r < 0 ? e.msg : d->digest);
		}
	}
	arena_done(&a);
}

static void takes_an_entry_without_a_platform_last(void **state)
{
	struct oci_platform want = {VIEW("linux"), VIEW("amd64"), VIEW_NONE};
	const struct oci_descriptor *d = NULL;
	struct err e = ERR_NONE;
	struct oci_document doc;
	struct arena a;

	arena_init(&a, 1 << 20);
	assert_int_equal(parse(INDEX(DESC(OCI "index.v1+json", D("0001"),
					  "5") "," ENTRY(D("0002"), "linux", "amd64", "")),
			       "", &a, &doc, &e),
			 0);
	assert_int_equal(oci_index_choose(&doc, &want, &d, &e), 0);
	assert_string_equal(d->digest, D("0002"));
	assert_int_equal(parse(INDEX(DESC("x/y", D("0003"), "5") "," DESC(OCI "index.v1+json",
									  D("0001"), "5")),
			       "", &a, &doc, &e),
			 0);
	assert_int_equal(oci_index_choose(&doc, &want, &d, &e), 0);
	assert_string_equal(d->digest, D("0001"));
	assert_int_equal(d->media, OCI_INDEX);
	assert_int_equal(parse(INDEX(""), "", &a, &doc, &e), 0);
	assert_int_equal(oci_index_choose(&doc, &want, &d, &e), -EOPNOTSUPP);
	arena_done(&a);
}

static void reads_how_an_image_starts(void **state)
{
	static const char text[] =
		"{\"os\":\"linux\",\"architecture\":\"amd64\",\"config\":{\"Env\":[\"A=1\",\"B=\"],"
		"\"Entrypoint\":[\"/init\"],\"Cmd\":null,\"User\":\"65532:65532\",\"WorkingDir\":"
		"\"/app\",\"Volumes\":{\"/data\":{}},\"StopSignal\":\"SIGTERM\",\"Labels\":{}},"
		"\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"" D("cccc") "\"]},\"history\":[]}";
	struct oci_platform amd = {VIEW("linux"), VIEW("amd64"), VIEW_NONE};
	struct oci_platform arm = {VIEW("linux"), VIEW("arm64"), VIEW_NONE};
	struct err e = ERR_NONE;
	struct oci_config c;
	struct arena a;

	arena_init(&a, 1 << 20);
	assert_int_equal(oci_config_parse(view_of(text), &a, &c, &e), 0);
	assert_int_equal(c.diff_ids_n, 1);
	assert_string_equal(c.diff_ids[0], D("cccc"));
	assert_int_equal(c.env.n, 2);
	assert_true(view_is(c.env.v[1], "B="));
	assert_int_equal(c.entrypoint.n, 1);
	assert_int_equal(c.cmd.n, 0);
	assert_true(view_is(c.user, "65532:65532"));
	assert_true(view_is(c.working_dir, "/app"));
	assert_true(view_is(c.volumes.v[0], "/data"));
	assert_int_equal(oci_config_check(&c, 1, &amd, &e), 0);
	assert_int_equal(oci_config_check(&c, 2, &amd, &e), -EBADMSG);
	assert_int_equal(oci_config_check(&c, 1, &arm, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.msg, "linux/amd64"));
	arena_done(&a);
}

static void refuses_configurations_that_break_the_rules(void **state)
{
#define ROOTFS "\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[]}"
	static const char *const cases[] = {
		"",
		"[]",
		"{}",
		"{\"rootfs\":[]}",
		"{\"rootfs\":{\"type\":\"other\",\"diff_ids\":[]}}",
		"{\"rootfs\":{\"type\":\"layers\",\"diff_ids\":{}}}",
		"{\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"x\"]}}",
		"{\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[7]}}",
		"{" ROOTFS ",\"config\":[]}",
		"{" ROOTFS ",\"config\":{\"Env\":\"A=1\"}}",
		"{" ROOTFS ",\"config\":{\"Env\":[1]}}",
		"{" ROOTFS ",\"config\":{\"Env\":[\"A=\\u0000\"]}}",
		"{" ROOTFS ",\"config\":{\"Volumes\":[]}}",
		"{" ROOTFS ",\"config\":{\"User\":0}}",
		"{" ROOTFS ",\"os\":1}",
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_NONE;
		struct oci_config c;
		struct arena a;

		arena_init(&a, 1 << 20);
		if (oci_config_parse(view_of(cases[i]), &a, &c, &e) != -EBADMSG)
			fail_msg("%s: %d %s", cases[i], e.code, e.msg);
		arena_done(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_manifests_of_both_families),
		cmocka_unit_test(refuses_what_is_not_what_it_says),
		cmocka_unit_test(bounds_the_number_of_layers),
		cmocka_unit_test(chooses_what_the_machine_can_run),
		cmocka_unit_test(takes_an_entry_without_a_platform_last),
		cmocka_unit_test(reads_how_an_image_starts),
		cmocka_unit_test(refuses_configurations_that_break_the_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
