/*
 * codec/jupyter_msg.c - routing parts, "<IDS|MSG>", signature, header, parent, metadata, content.
 */
#include "codec/jupyter_msg.h"

#include <errno.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/hex.h"
#include "codec/json.h"
#include "codec/json_writer.h"
#include "codec/sha256.h"
#include "codec/zmtp.h"

#define DELIMITER  VIEW("<IDS|MSG>")
#define SIGNED	   4 /* parts behind the signature that it covers */
#define SIGNED_MAX ((size_t)256 << 20)

#define SIGNATURE_LEN (2 * SHA256_BYTES)

static int sign(const struct view *parts, struct view key, char ret[SIGNATURE_LEN + 1])
{
	struct buf text = BUF_INIT(SIGNED_MAX);
	unsigned char sum[SHA256_BYTES];
	int r = 0;

	for (size_t i = 0; r == 0 && i < SIGNED; i++)
		r = buf_append_view(&text, parts[i]);
	if (r == 0) {
		sha256_hmac(key, buf_view(&text), sum);
		hex_format(sum, sizeof(sum), ret);
	}
	buf_done(&text);
	return r;
}

static int check(const struct view *parts, struct view signature, struct view key, struct err *e)
{
	char wanted[SIGNATURE_LEN + 1];

	if (sign(parts, key, wanted) < 0)
		return err_set(e, -EPROTO, "the kernel's message is too long");
	if (!bytes_equal_secret(signature, view_mem(wanted, SIGNATURE_LEN)))
		return err_set(e, -EBADMSG, "the kernel's message is signed with another key");
	return 0;
}

static int parse_object(struct view text, struct json **ret, struct err *e)
{
	osb_cleanup(json_freep) struct json *v = NULL;

	if (json_parse(text, 0, &v, e) < 0)
		return err_ctx(e, "a kernel's message");
	if (json_kind(v) != JSON_OBJECT)
		return err_set(e, -EPROTO, "a kernel's message holds %s",
			       json_kind_name(json_kind(v)));
	*ret = take_ptr(v);
	return 0;
}

int jupyter_msg_parse(const struct view *parts, size_t n, struct view key, struct jupyter_msg *ret,
		      struct err *e)
{
	struct jupyter_msg m = {0};
	size_t at = 0;
	int r;

	while (at < n && !view_eq(parts[at], DELIMITER))
		at++;
	if (n - at < 2 + SIGNED)
		return err_set(e, -EPROTO, "the kernel's message has too few parts");
	parts += at + 1;
	r = key.len ? check(parts + 1, parts[0], key, e) : 0;
	if (r == 0)
		r = parse_object(parts[1], &m.header, e);
	if (r == 0)
		r = parse_object(parts[2], &m.parent, e);
	if (r == 0)
		r = parse_object(parts[4], &m.content, e);
	if (r == 0 && !json_str(json_get(m.header, "msg_type"), &m.type))
		r = err_set(e, -EPROTO, "the kernel's message has no type");
	if (r < 0) {
		jupyter_msg_done(&m);
		return r == -EBADMSG ? r : -EPROTO;
	}
	if (!json_str(json_get(m.parent, "msg_id"), &m.parent_id))
		m.parent_id = VIEW_NONE;
	*ret = m;
	return 0;
}

void jupyter_msg_done(struct jupyter_msg *m)
{
	json_free(m->header);
	json_free(m->parent);
	json_free(m->content);
	*m = (struct jupyter_msg){0};
}

int jupyter_msg_format(const struct jupyter_request *q, struct view key, struct buf *out)
{
	struct buf header = BUF_INIT(4096);
	char signature[SIGNATURE_LEN + 1] = "";
	struct json_writer w;
	int r;

	json_writer_init(&w, &header);
	json_write_object(&w);
	json_put_cstr(&w, "msg_id", q->id);
	json_put_cstr(&w, "msg_type", q->type);
	json_put_cstr(&w, "session", q->session);
	json_put_cstr(&w, "username", "opensandbox");
	json_put_cstr(&w, "date", "1970-01-01T00:00:00Z");
	json_put_cstr(&w, "version", "5.3");
	json_write_object_end(&w);
	r = json_writer_end(&w);
	if (r == 0) {
		struct view parts[SIGNED] = {buf_view(&header), VIEW("{}"), VIEW("{}"), q->content};

		r = key.len ? sign(parts, key, signature) : 0;
		if (r == 0)
			r = zmtp_put_part(out, DELIMITER, true);
		if (r == 0)
			r = zmtp_put_part(out, view_of(signature), true);
		for (size_t i = 0; r == 0 && i < SIGNED; i++)
			r = zmtp_put_part(out, parts[i], i + 1 < SIGNED);
	}
	buf_done(&header);
	return r;
}
