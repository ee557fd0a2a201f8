/*
 * execd/shell_script.c - the script of a session's shell and the frames that it reports.
 *
 * Everything is written out at each run instead of being kept in shell functions: what user code
 * redefines or unsets cannot break it, and nothing of ours shows up among the user's names.
 */
#include "execd/shell_script.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/strv.h"

/*
 * An interrupt has to end the whole run, not only the program that runs now.  An error in a trap
 * takes dash and ash back to the `command eval` with everything they know; bash has no such way,
 * so it ends and a new one takes over.
 */
static const char *const interrupt_trap[] = {
	[SHELL_BASH] = "shopt -s expand_aliases\ntrap 'exit 130' INT\n",
	[SHELL_POSIX] = "trap '. /-/- 2>/dev/null' INT\n",
};

/* What a shell can print of itself without starting a program. */
static const char *const capture[] = {
	[SHELL_BASH] = "declare -p;declare -f;alias -p;",
	[SHELL_POSIX] = "export -p;",
};

int shell_script_quote(struct buf *out, struct view text)
{
	int r = buf_append_char(out, '\'');

	while (r == 0) {
		size_t n = view_find(text, '\'');

		r = buf_append_view(out, view_first(text, n));
		if (r < 0 || n == text.len)
			break;
		r = buf_append_str(out, "'\\''");
		text = view_skip(text, n + 1);
	}
	return r == 0 ? buf_append_char(out, '\'') : r;
}

bool shell_script_is_name(struct view name)
{
	if (name.len == 0 || (name.p[0] >= '0' && name.p[0] <= '9'))
		return false;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.p[i];

		if (!(c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
		      (c >= 'A' && c <= 'Z')))
			return false;
	}
	return true;
}

int shell_script_begin(struct buf *out, enum shell_kind kind, const char *cwd, struct view state)
{
	int r = buf_append_str(out, "exec 8>&1 9>&0 >/dev/null 2>&1\n");

	if (r == 0)
		r = buf_append_view(out, state);
	if (r == 0)
		r = buf_append_char(out, '\n');
	if (r == 0)
		r = buf_append_str(out, interrupt_trap[kind]);
	if (r == 0)
		r = buf_append_str(out, "command cd -- ");
	if (r == 0)
		r = shell_script_quote(out, view_of(cwd));
	return r == 0 ? buf_append_str(out, " || command cd /\n") : r;
}

/* NAME='value' in front of a command is an export for that command alone. */
static int put_envs(struct buf *out, const struct strv *envs)
{
	int r = 0;

	for (size_t i = 0; envs && i < envs->len && r == 0; i++) {
		struct view rest = view_of(envs->v[i]);
		size_t at = view_find(rest, '=');

		r = buf_append_view(out, view_first(rest, at));
		if (r == 0)
			r = buf_append_char(out, '=');
		if (r == 0)
			r = shell_script_quote(out, view_skip(rest, at + 1));
		if (r == 0)
			r = buf_append_char(out, ' ');
	}
	return r;
}

int shell_script_run(struct buf *out, enum shell_kind kind, const struct shell_script_run *run)
{
	int r = 0;

	if (run->cwd) {
		r = buf_append_str(out, "command cd -- ");
		if (r == 0)
			r = shell_script_quote(out, view_of(run->cwd));
		if (r == 0)
			r = buf_append_str(out, " 2>&8 && ");
	}
	if (r == 0)
		r = put_envs(out, run->envs);
	if (r == 0)
		r = buf_append_str(out, "command eval ");
	if (r == 0)
		r = shell_script_quote(out, run->command);
	if (r == 0)
		r = buf_append_str(out, " </dev/null >&8 2>&1 8>&- 9>&-\n");
	if (r == 0)
		r = buf_printf(out, "command printf '\\0R%" PRIu64 " %%s\\0' \"$?\" >&9\n",
			       run->seq);
	if (r == 0)
		r = buf_printf(out,
			       "{ command printf '\\0D';command pwd;command printf '\\0\\0Sumask ';"
			       "umask;%scommand printf '\\0\\0E%" PRIu64 "\\0'; } >&9\n",
			       capture[kind], run->seq);
	return r;
}

static bool parse_run(struct view text, struct shell_frame *ret)
{
	struct view seq = view_first(text, view_find(text, ' '));
	uint32_t code;

	if (!num_parse_u64(seq, &ret->seq) || !num_parse_u32(view_skip(text, seq.len + 1), &code) ||
	    code > INT_MAX)
		return false;
	ret->code = (int)code;
	return true;
}

static enum shell_frame_kind parse_frame(struct view frame, struct shell_frame *ret)
{
	struct view text = view_skip(frame, 1);

	switch (frame.p[0]) {
	case 'R':
		return parse_run(text, ret) ? SHELL_FRAME_RUN : SHELL_FRAME_OTHER;
	case 'D':
		/* pwd ends its line; a directory name may end with such a byte too. */
		ret->text = view_first(text, text.len > 0 ? text.len - 1 : 0);
		return ret->text.len > 0 && ret->text.p[0] == '/' ? SHELL_FRAME_CWD
								  : SHELL_FRAME_OTHER;
	case 'S':
		ret->text = text;
		return SHELL_FRAME_STATE;
	case 'E':
		return num_parse_u64(text, &ret->seq) ? SHELL_FRAME_END : SHELL_FRAME_OTHER;
	default:
		return SHELL_FRAME_OTHER;
	}
}

enum shell_frame_kind shell_frame_next(struct view *in, struct shell_frame *ret)
{
	*ret = (struct shell_frame){0};
	for (;;) {
		size_t len = view_find(*in, '\0');
		struct view frame = view_first(*in, len);

		if (len == in->len)
			return SHELL_FRAME_NONE;
		*in = view_skip(*in, len + 1);
		if (frame.len > 0)
			return ret->kind = parse_frame(frame, ret);
	}
}
