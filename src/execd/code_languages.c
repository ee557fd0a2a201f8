/*
 * execd/code_languages.c - the rows, and where a language's program is.
 */
#include "execd/code_languages.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/strv.h"
#include "codec/glob.h"
#include "codec/inflate.h"
#include "execd/find_shell.h"

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define VERSION_MAX  32
#define DRIVER_MAX   ((size_t)1 << 20)

/* The driver's names stay its own: what user code sees is an empty module. */
#define PYTHON_BOOT                                                                                \
	"import os;exec(compile(os.pread(4,1<<20,0),'<driver>','exec'),{'__name__':'driver'})"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

#define NODE_PROGRAMS                                                                              \
	LIST("/opt/node/v%v*/bin/node", "/usr/local/node/v%v*/bin/node",                           \
	     "/root/.nvm/versions/node/v%v*/bin/node", "node%v", "node", "nodejs",                 \
	     "/opt/node/*/bin/node")

#define NODE_START                                                                                 \
	"require('vm').runInThisContext(require('fs').readFileSync(4, 'utf8'), "                   \
	"{filename: 'opensandbox-driver'})(require, (name, options) => import(name, options))"

/* Compiled drivers are kept below the user's cache, under a name made of their text. */
#define CACHE_START                                                                                \
	"cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/opensandbox\n"                              \
	"set -- $(cat /proc/self/fd/[4-6] 2>/dev/null | cksum)\n"

/* The first context compiles while it starts, and keeps that for the others (OpenSandbox.java). */
#define JAVA_START                                                                                 \
	CACHE_START                                                                                \
	"kept=$cache/java-$1\n"                                                                    \
	"program=$(readlink -f \"$0\")\n"                                                          \
	"set -- \"${program%/*}/java\" -XX:+UseSerialGC --add-opens "                              \
	"java.base/java.io=ALL-UNNAMED\n"                                                          \
	"[ -f \"$kept/OpenSandbox.class\" ] && exec \"$@\" -cp \"$kept\" OpenSandbox\n"            \
	"exec \"$@\" --source 11 /proc/self/fd/4 \"$kept\"\n"

#define GO_START                                                                                   \
	CACHE_START                                                                                \
	"kept=$cache/go-$1\n"                                                                      \
	"[ \"${HOME-}${XDG_CACHE_HOME-}\" ] || export GOCACHE=${GOCACHE:-$cache/go-build}\n"       \
	"[ -x \"$kept\" ] || (\n"                                                                  \
	"unset GOROOT GOFLAGS GOOS GOARCH\n"                                                       \
	"mkdir -p \"$cache\" && made=$(mktemp -d \"$cache/go.XXXXXX\") &&\n"                       \
	"cat /proc/self/fd/4 >\"$made/driver.go\" && cat /proc/self/fd/5 >\"$made/cell.go\" &&\n"  \
	"GOTOOLCHAIN=local CGO_ENABLED=0 GO111MODULE=off \"$0\" build -trimpath -o "               \
	"\"$made/driver\" "                                                                        \
	"\"$made/driver.go\" \"$made/cell.go\" >&2 && mv \"$made/driver\" \"$kept\"\n"             \
	"rm -rf \"$made\")\n"                                                                      \
	"[ -x \"$kept\" ] && exec \"$kept\" \"$0\"\n"                                              \
	"echo '{\"ev\":\"failed\",\"message\":\"the Go driver could not be built\"}' >&3\n"

#define SQL_START                                                                                  \
	"case $0 in *sqlite3) exec bash /proc/self/fd/5 \"$0\" ;; esac\n"                          \
	"exec \"$0\" -c \"" PYTHON_BOOT "\"\n"

/* clang-format off */
static const struct code_language languages[] = {
	{
		.name = "python",
		.programs = LIST("python%v", "/opt/python/versions/cpython-%v*/bin/python3",
				 "python3", "python"),
		.version_env = "PYTHON_VERSION",
		.args = LIST("-c", PYTHON_BOOT),
		.files = {"python.py", "python_rich.py"},
		.install = "python3 (3.8 or newer)",
	},
	{
		.name = "javascript",
		.programs = NODE_PROGRAMS,
		.version_env = "NODE_VERSION",
		.args = LIST("-e", NODE_START, "javascript"),
		.files = {"node.js"},
		.install = "node 18 or newer (Debian: nodejs)",
	},
	{
		.name = "typescript",
		.programs = NODE_PROGRAMS,
		.version_env = "NODE_VERSION",
		.args = LIST("-e", NODE_START, "typescript"),
		.files = {"node.js"},
		.install = "node 18 or newer (Debian: nodejs node-typescript)",
	},
	{
		/* What has no jshell is no JDK, or too old. */
		.name = "java",
		.programs = LIST("/usr/lib/jvm/java-%v-*/bin/jshell",
				 "/usr/lib/jvm/*-%v-*/bin/jshell",
				 "/usr/lib/jvm/*-%v/bin/jshell", "/usr/lib/jvm/*-%v.*/bin/jshell",
				 "/opt/java/*%v*/bin/jshell", "jshell",
				 "/opt/java/openjdk/bin/jshell", "/usr/lib/jvm/*/bin/jshell"),
		.version_env = "JAVA_VERSION",
		.script = JAVA_START,
		.files = {"OpenSandbox.java"},
		.install = "a JDK, 11 or newer (Debian: default-jdk-headless)",
	},
	{
		.name = "go",
		.programs = LIST("/opt/go/%v*/bin/go", "/usr/local/go%v*/bin/go",
				 "/usr/lib/go-%v/bin/go", "go%v", "go",
				 "/usr/local/go/bin/go", "/usr/lib/go/bin/go"),
		.version_env = "GO_VERSION",
		.script = GO_START,
		.files = {"go_driver.go", "go_cell.go", "go_state.go"},
		.install = "Go 1.18 or newer (Debian: golang-go)",
	},
	{
		.name = "bash",
		.programs = LIST("bash"),
		.args = LIST("--noprofile", "--norc", "--noediting", "-i"),
		.files = {"bash.sh"},
		.install = "bash",
		.flags = CODE_SHELL,
	},
	{
		.name = "sql",
		.programs = LIST("python%v", "python3", "python", "sqlite3"),
		.version_env = "PYTHON_VERSION",
		.script = SQL_START,
		.files = {"sql.py", "sql.sh"},
		.install = "python3 (3.8 or newer, with its sqlite3 module), or sqlite3 and bash",
		.flags = CODE_HIDDEN,
	},
};
/* clang-format on */

const struct code_language *code_language_find(struct view name)
{
	for (size_t i = 0; i < ARRAY_LEN(languages); i++)
		if (view_iis(name, languages[i].name))
			return &languages[i];
	return NULL;
}

static bool executable(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* The newest entry of `dir` (by version, as in 3.9 < 3.10) that fits, and leads to a program. */
static char *newest(const char *dir, struct view pattern, const char *below)
{
	osb_cleanup(mem_freep) char *best_name = NULL;
	char *best = NULL;
	struct dirent *entry;
	DIR *d = opendir(dir);

	if (!d)
		return NULL;
	while ((entry = readdir(d))) {
		osb_cleanup(mem_freep) char *path = NULL;

		if (!glob_match(pattern, view_of(entry->d_name)) ||
		    (best_name && strverscmp(entry->d_name, best_name) <= 0))
			continue;
		path = mem_printf("%s/%s/%s", dir, entry->d_name, below);
		if (!executable(path))
			continue;
		free(best);
		free(best_name);
		best = take_ptr(path);
		best_name = mem_strdup(entry->d_name);
	}
	closedir(d);
	return best;
}

/* "/dir/name*" + "/below": the one directory with a pattern is looked through. */
static char *by_pattern(const char *pattern)
{
	osb_cleanup(mem_freep) char *dir = NULL;
	const char *star = strchr(pattern, '*'), *begin, *end;

	if (!star)
		return executable(pattern) ? mem_strdup(pattern) : NULL;
	end = strchrnul(star, '/');
	for (begin = star; begin[-1] != '/';)
		begin--;
	dir = mem_strndup(pattern, (size_t)(begin - 1 - pattern));
	return newest(dir, view_mem(begin, (size_t)(end - begin)), *end ? end + 1 : end);
}

static char *candidate(const char *pattern, struct view version, const char *search_path)
{
	osb_cleanup(mem_freep) char *name = NULL;
	const char *at = strstr(pattern, "%v");

	if ((at == NULL) != (version.len == 0))
		return NULL;
	name = at ? mem_printf("%.*s" VIEW_FMT "%s", (int)(at - pattern), pattern,
			       VIEW_ARG(version), at + 2)
		  : mem_strdup(pattern);
	return *name == '/' ? by_pattern(name) : find_program(search_path, name);
}

static char *first_candidate(const struct code_language *l, struct view version,
			     const char *search_path)
{
	for (size_t i = 0; l->programs[i]; i++) {
		char *found = candidate(l->programs[i], version, search_path);

		if (found)
			return found;
	}
	return NULL;
}

/* What may stand in a file's name: digits and dots and what versions have besides. */
static bool is_version(struct view v)
{
	if (v.len == 0 || v.len > VERSION_MAX || v.p[0] == '.')
		return false;
	for (size_t i = 0; i < v.len; i++)
		if (!(v.p[i] == '.' || v.p[i] == '-' || v.p[i] == '+' || v.p[i] == '_' ||
		      (v.p[i] >= '0' && v.p[i] <= '9') || (v.p[i] >= 'a' && v.p[i] <= 'z')))
			return false;
	return true;
}

/* "3.12.1", then "3.12", then "3": images name a version more exactly than they install it. */
static bool less_exact(struct view *version)
{
	for (size_t n = version->len; n > 0; n--)
		if (version->p[n - 1] == '.') {
			*version = view_first(*version, n - 1);
			return true;
		}
	return false;
}

int code_language_program(const struct code_language *l, const struct strv *env, char **ret,
			  struct err *e)
{
	const char *search_path = strv_env_get(env, VIEW("PATH"));
	const char *wanted = l->version_env ? strv_env_get(env, view_of(l->version_env)) : NULL;
	struct view version = view_of(wanted);
	char *found = NULL;

	if (!search_path)
		search_path = DEFAULT_PATH;
	if (is_version(version))
		do
			found = first_candidate(l, version, search_path);
		while (!found && less_exact(&version));
	if (!found)
		found = first_candidate(l, VIEW_NONE, search_path);
	/* A PATH of the sandbox's own may forget where programs live. */
	if (!found)
		found = first_candidate(l, VIEW_NONE, DEFAULT_PATH);
	if (!found)
		return err_set(e, -ENOENT, "no interpreter for '%s' in this sandbox: install %s",
			       l->name, l->install);
	*ret = found;
	return 0;
}

char *code_driver_text(const char *name, size_t *ret_len)
{
	const struct code_driver_file *f = code_driver_files;
	struct buf text = BUF_INIT(DRIVER_MAX);
	int r;

	while (strcmp(f->name, name) != 0)
		f++;
	r = inflate_all(f->packed, &text);
	/* The build made it. */
	assert(r == 0 && text.len == f->size);
	*ret_len = text.len;
	return buf_take_str(&text);
}
