/*
 * execd/code_shell.c - see code_shell.h.
 */
#include "execd/code_shell.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "execd/code_languages.h"
#include "execd/shell_script.h"

struct code_shell {
	char *text;
	struct view begin, run;
};

struct code_shell *code_shell_new(const char *file)
{
	static const struct view mark = VIEW("\n#--- run\n");
	struct code_shell *s = mem_new(struct code_shell);
	struct view all;
	size_t len, at;

	s->text = code_driver_text(file, &len);
	all = view_mem(s->text, len);
	at = view_find_view(all, mark);
	assert(at < all.len);
	s->begin = view_first(all, at + 1);
	s->run = view_skip(all, at + mark.len);
	return s;
}

void code_shell_free(struct code_shell *s)
{
	if (s)
		free(s->text);
	free(s);
}

int code_shell_begin(const struct code_shell *s, struct buf *out)
{
	return buf_append_view(out, s->begin);
}

int code_shell_run(const struct code_shell *s, struct buf *out, const char *id, uint64_t count,
		   struct view code)
{
	struct view rest = s->run, part;
	bool is_name = false;
	int r = 0;

	/* Every second part is the name of something to put there. */
	while (r == 0 && view_split(&rest, '@', &part)) {
		if (!is_name)
			r = buf_append_view(out, part);
		else if (view_is(part, "CODE"))
			r = shell_script_quote(out, code);
		else if (view_is(part, "ID"))
			r = buf_append_str(out, id);
		else
			r = buf_printf(out, "%" PRIu64, count);
		is_name = !is_name;
	}
	return r;
}
