/*
 * imager/main.c - work on images for opensandbox-server, one job a process.
 *
 * The mode says which rights the process keeps; it gives the others up before it reads what is to
 * be done.  The asker is on file descriptor 3.
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "imager/job.h"
#include "imager/modes.h"
#include "imager/options.h"

static void print_help(void)
{
	printf("usage: opensandbox-image [--user UID:GID] MODE\n\n"
	       "Does one job for opensandbox-server, which starts it: a request comes as a line "
	       "of\n"
	       "JSON over file descriptor 3, progress and the result go back the same way.\n"
	       "Blobs are kept in the directory that is file descriptor 4; for files, that is the\n"
	       "state directory.\n\n"
	       "modes:\n");
	for (size_t i = 0; i < modes_n; i++)
		printf("  %-8s %s\n", modes[i].name, modes[i].help);
	printf("\noptions:\n"
	       "  --user UID:GID  become this user first\n"
	       "  --state-dir DIR for files: the state directory, instead of descriptor 4\n"
	       "  --version       print the version\n"
	       "  --help          print this\n");
}

static const struct mode *find_mode(const char *name)
{
	for (size_t i = 0; i < modes_n; i++)
		if (strcmp(modes[i].name, name) == 0)
			return &modes[i];
	return NULL;
}

/* It lies beside us, wherever that is; it gets what we got. */
static int pass_on(const char *program, char **argv, struct err *e)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path));
	char *slash = n > 0 ? memrchr(path, '/', (size_t)n) : NULL;
	size_t room = slash ? sizeof(path) - (size_t)(slash + 1 - path) : 0;

	if (room <= strlen(program))
		return err_set(e, -ENAMETOOLONG, "cannot find %s", program);
	memcpy(slash + 1, program, strlen(program) + 1);
	execv(path, argv);
	/* Not -errno: that nothing is there is not what the asker means by it. */
	return err_set(e, -ENOEXEC, "execute %s: %m", path);
}

static int complain(const struct err *e, int code)
{
	fprintf(stderr, "opensandbox-image: %s\n", e->msg);
	return code;
}

static void do_job(struct job *j, const struct mode *mode, const struct options *o, struct err *e)
{
	/* That we still have to do it ourselves means that the other program could not be started.
	 */
	if (mode->program || mode->confine(o, e) < 0 || job_read(j, e) < 0)
		job_failed(j, e);
	else
		mode->run(j);
}

int main(int argc, char **argv)
{
	const struct mode *mode = NULL;
	struct err e = ERR_NONE, job_error = ERR_NONE;
	struct options o;
	struct job job;

	if (options_parse(argc, argv, &o, &e) < 0)
		return complain(&e, 2);
	if (o.help || o.version) {
		if (o.help)
			print_help();
		else
			printf("opensandbox-image " OSB_VERSION "\n");
		return 0;
	}
	mode = find_mode(o.mode);
	if (!mode) {
		(void)err_set(&e, -EINVAL, "there is no mode '%s'; see --help", o.mode);
		return complain(&e, 2);
	}
	if (mode->program && pass_on(mode->program, argv, &e) < 0)
		(void)complain(&e, 0);
	(void)umask(077);
	(void)signal(SIGPIPE, SIG_IGN);
	if (job_open(&job, JOB_FD, &job_error) < 0)
		return complain(&job_error, 2);
	do_job(&job, mode, &o, &e);
	job_close(&job);
	/* A leak check at exit would need calls that the filter refuses. */
	_exit(0);
}
