/*
 * codec/warden_mounts.c - the mounts file: a head, the layers' numbers, then the volumes.
 *
 * One byte string for one meaning: what follows a string's NUL is zero, and nothing follows the
 * last record.
 */
#include "codec/warden_mounts.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"

#define MAGIC	     0x544d534fu /* "OSMT" */
#define MAX_READONLY 1

struct head {
	uint32_t magic;
	uint32_t host_base;
	uint32_t layers_n;
	uint32_t volumes_n;
};

_Static_assert(sizeof(struct head) + WARDEN_LAYERS_MAX * sizeof(uint64_t) +
			       WARDEN_VOLUMES_MAX * sizeof(struct warden_volume) ==
		       WARDEN_MOUNTS_MAX_BYTES,
	       "the largest file");

int warden_mounts_format(const struct warden_mounts *m, struct buf *out, struct err *e)
{
	struct head h = {
		.magic = MAGIC,
		.host_base = m->host_base,
		.layers_n = (uint32_t)m->layers_n,
		.volumes_n = (uint32_t)m->volumes_n,
	};

	if (m->layers_n > WARDEN_LAYERS_MAX || m->volumes_n > WARDEN_VOLUMES_MAX)
		return err_set(e, -E2BIG, "%zu layers and %zu volumes: at most %d and %d",
			       m->layers_n, m->volumes_n, WARDEN_LAYERS_MAX, WARDEN_VOLUMES_MAX);
	if (buf_append(out, &h, sizeof(h)) < 0 ||
	    buf_append(out, m->layers, m->layers_n * sizeof(m->layers[0])) < 0 ||
	    buf_append(out, m->volumes, m->volumes_n * sizeof(m->volumes[0])) < 0)
		return err_set(e, -E2BIG, "the mounts file is too large");
	return 0;
}

/* Ends with a NUL, and holds nothing behind it. */
static bool is_text(const char text[WARDEN_PATH_MAX])
{
	const char *nul = memchr(text, '\0', WARDEN_PATH_MAX);

	for (size_t i = nul ? (size_t)(nul - text) : 0; nul && i < WARDEN_PATH_MAX; i++)
		if (text[i] != '\0')
			return false;
	return nul != NULL;
}

/* Names with one slash between them, none of them "." or "..". */
static bool is_clean(struct view path)
{
	struct view rest = path, name;

	while (view_split(&rest, '/', &name))
		if (name.len == 0 || name.len > WARDEN_NAME_MAX || view_is(name, ".") ||
		    view_is(name, ".."))
			return false;
	return path.len > 0 && path.p[path.len - 1] != '/';
}

/* What the warden itself mounts; a volume there would lie below it. */
static bool is_reserved(struct view path)
{
	static const char *const ours[] = {"proc", "sys", "dev"};
	struct view first = view_first(path, view_find(path, '/'));

	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		if (view_is(first, ours[i]))
			return true;
	return false;
}

bool warden_mounts_path_ok(struct view path)
{
	struct view below = view_skip(path, 1);

	return path.len > 1 && path.len < WARDEN_PATH_MAX && path.p[0] == '/' &&
	       !view_has(path, '\0') && is_clean(below) && !is_reserved(below);
}

bool warden_mounts_sub_path_ok(struct view path)
{
	return path.len == 0 ||
	       (path.len < WARDEN_PATH_MAX && !view_has(path, '\0') && is_clean(path));
}

static int check_volume(const struct warden_volume *v, size_t i, struct err *e)
{
	if (v->kind < WARDEN_VOLUME_NAMED || v->kind > WARDEN_VOLUME_MOUNTED)
		return err_set(e, -EPROTO, "mounts file: volume %zu is of kind %u", i, v->kind);
	if (v->read_only > MAX_READONLY)
		return err_set(e, -EPROTO, "mounts file: volume %zu is read-only %u times", i,
			       v->read_only);
	if (!is_text(v->sub_path) || !warden_mounts_sub_path_ok(view_of(v->sub_path)))
		return err_set(e, -EPROTO, "mounts file: volume %zu has a bad path inside it", i);
	if (!is_text(v->mount_path) || !warden_mounts_path_ok(view_of(v->mount_path)))
		return err_set(e, -EPROTO, "mounts file: volume %zu has a bad mount path", i);
	return 0;
}

static int check_layers(const struct warden_mounts *m, struct err *e)
{
	if (!m->host_base && m->layers_n == 0)
		return err_set(e, -EPROTO, "mounts file: no layer and no host image");
	for (size_t i = 0; i < m->layers_n; i++) {
		if (m->layers[i] == 0)
			return err_set(e, -EPROTO, "mounts file: layer 0");
		for (size_t k = 0; k < i; k++)
			if (m->layers[k] == m->layers[i])
				return err_set(e, -EPROTO, "mounts file: a layer twice");
	}
	return 0;
}

static int check_volumes(const struct warden_mounts *m, struct err *e)
{
	for (size_t i = 0; i < m->volumes_n; i++) {
		int r = check_volume(&m->volumes[i], i, e);

		if (r < 0)
			return r;
		for (size_t k = 0; k < i; k++)
			if (strcmp(m->volumes[k].mount_path, m->volumes[i].mount_path) == 0)
				return err_set(e, -EPROTO, "mounts file: a mount path twice");
	}
	return 0;
}

int warden_mounts_parse(struct view file, struct warden_mounts *ret, struct err *e)
{
	size_t layers_size, volumes_size;
	struct head h;
	int r;

	if (file.len < sizeof(h) || file.len > WARDEN_MOUNTS_MAX_BYTES)
		return err_set(e, -EPROTO, "mounts file: %zu bytes", file.len);
	memcpy(&h, file.p, sizeof(h));
	if (h.magic != MAGIC || h.host_base > 1 || h.layers_n > WARDEN_LAYERS_MAX ||
	    h.volumes_n > WARDEN_VOLUMES_MAX)
		return err_set(e, -EPROTO, "mounts file: a bad head");
	layers_size = h.layers_n * sizeof(ret->layers[0]);
	volumes_size = h.volumes_n * sizeof(ret->volumes[0]);
	if (file.len != sizeof(h) + layers_size + volumes_size)
		return err_set(e, -EPROTO, "mounts file: %zu bytes for %u layers and %u volumes",
			       file.len, h.layers_n, h.volumes_n);
	memset(ret, 0, sizeof(*ret));
	ret->host_base = h.host_base != 0;
	ret->layers_n = h.layers_n;
	ret->volumes_n = h.volumes_n;
	memcpy(ret->layers, file.p + sizeof(h), layers_size);
	memcpy(ret->volumes, file.p + sizeof(h) + layers_size, volumes_size);
	r = check_layers(ret, e);
	return r < 0 ? r : check_volumes(ret, e);
}

int warden_mounts_add_layer(struct warden_mounts *m, uint64_t number, struct err *e)
{
	for (size_t i = 0; i < m->layers_n; i++) {
		if (m->layers[i] != number)
			continue;
		memmove(&m->layers[i], &m->layers[i + 1],
			(m->layers_n - i - 1) * sizeof(m->layers[0]));
		m->layers_n--;
		break;
	}
	if (m->layers_n == WARDEN_LAYERS_MAX)
		return err_set(e, -E2BIG, "more than %d layers", WARDEN_LAYERS_MAX);
	m->layers[m->layers_n++] = number;
	return 0;
}
