/*
 * User files: whoever is found by name is found by id too (maybe as an earlier twin), and groups
 * never exceed their bound.
 */
#include <assert.h>
#include <stdint.h>

#include "codec/passwd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct view text = view_mem(data, size);
	struct view name = view_first(text, view_find(text, ':'));
	struct passwd_user u, twin;
	struct passwd_group g, group_twin;
	uint32_t gids[4];

	if (passwd_user_by_name(text, name, &u)) {
		assert(view_eq(u.name, name) && !view_has(u.home, ':') && !view_has(u.shell, '\n'));
		assert(passwd_user_by_uid(text, u.uid, &twin) && twin.uid == u.uid);
	}
	if (passwd_group_by_name(text, name, &g)) {
		assert(view_eq(g.name, name));
		assert(passwd_group_by_gid(text, g.gid, &group_twin) && group_twin.gid == g.gid);
	}
	assert(passwd_groups_of(text, name, gids, 4) <= 4);
	assert(passwd_groups_of(text, name, gids, 0) == 0);
	return 0;
}
