/*
 * execd/find_shell.c - looks for a shell in the directories of PATH.
 */
#include "execd/find_shell.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/view.h"
#include "execd/app.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

char *find_program(const char *search_path, const char *name)
{
	struct view rest = view_of(search_path), dir;

	while (view_split(&rest, ':', &dir)) {
		struct stat st;
		char *path;

		if (dir.len == 0 || dir.p[0] != '/')
			continue;
		path = mem_printf(VIEW_FMT "/%s", VIEW_ARG(dir), name);
		if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0)
			return path;
		free(path);
	}
	return NULL;
}

static char *find(struct app *app, const char *name)
{
	const char *search_path = strv_env_get(&app->env, VIEW("PATH"));
	char *path = search_path ? find_program(search_path, name) : NULL;

	/* A PATH of the sandbox's own may forget where shells live. */
	return path ? path : find_program(DEFAULT_PATH, name);
}

const char *find_shell(struct app *app)
{
	if (app->bash)
		return app->bash;
	app->bash = find(app, "bash");
	if (app->bash)
		return app->bash;
	free(app->sh);
	app->sh = find(app, "sh");
	return app->sh;
}

void find_shell_forget(struct app *app)
{
	free(app->bash);
	app->bash = NULL;
}
