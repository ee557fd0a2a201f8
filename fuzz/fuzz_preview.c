/*
 * What a gateway reads: its answers lie within what it was given, Location and cookies stay below
 * their prefix.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "policy/preview.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_route(struct view text)
{
	struct preview_request r = {.host = text, .to = text, .target = text};

	for (int mode = 0; mode < PREVIEW_MODES_; mode++) {
		struct preview p;

		if (!preview_find((enum preview_mode)mode, &r, &p))
			continue;
		must(p.to.port > 0 && p.to.id.len > 0);
		preview_take_signature(&p, /* secured= */ true, NULL, 0);
		must(p.prefix.len <= text.len && p.target.len > 0);
	}
}

/* Is there a Path or a Domain that leads elsewhere? */
static void check_cookie(struct view cookie)
{
	struct view rest = cookie, part;
	bool first = true;

	for (; view_split(&rest, ';', &part); first = false) {
		struct view value = part, name;

		if (first || !view_split(&value, '=', &name))
			continue;
		must(!view_iis(view_trim(name), "Domain"));
		if (view_iis(view_trim(name), "Path"))
			must(view_starts(value, VIEW("/p")));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	osb_cleanup(arena_done) struct arena a;
	struct view text = view_mem(data, size), location;

	arena_init(&a, 1 << 20);
	check_route(text);
	check_cookie(preview_cookie(&a, text, VIEW("/p")));
	location = preview_location(&a, text, VIEW("/p"), 8000);
	must(!view_starts(location, VIEW("/")) || view_starts(location, VIEW("/p")) ||
	     view_starts(location, VIEW("//")));
	(void)preview_format(text, PREVIEW_TEXT);
	return 0;
}
