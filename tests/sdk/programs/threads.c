/* threads.c - one client and one sandbox, eight threads. */
#include <pthread.h>

#include "check.h"

#define THREADS 8
#define ROUNDS	20

struct job {
	osb_sandbox *box;
	int number;
};

static void *work(void *arg)
{
	struct job *j = arg;
	osb_command o = OSB_COMMAND_INIT;
	char command[64], expected[32];
	osb_error own;

	for (int i = 0; i < ROUNDS; i++) {
		struct text out = {.n = 0};
		osb_output output = {.out = collect, .arg = &out};
		osb_run run;

		snprintf(command, sizeof(command), "echo %d-%d", j->number, i);
		snprintf(expected, sizeof(expected), "%d-%d\n", j->number, i);
		o.command = command;
		if (osb_command_run(j->box, &o, &output, NULL, &run, &own) < 0) {
			fprintf(stderr, "%s\n", own.message);
			return "failed";
		}
		if (strcmp(out.bytes, expected) != 0)
			return "wrong output";
	}
	return NULL;
}

int main(void)
{
	osb_client *c = connect_client();
	struct job jobs[THREADS];
	pthread_t threads[THREADS];
	osb_sandbox *s = make_sandbox(c);
	void *problem = NULL;

	for (int i = 0; i < THREADS; i++) {
		jobs[i] = (struct job){s, i};
		CHECK(pthread_create(&threads[i], NULL, work, &jobs[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], &problem) == 0 && !problem);
	finish(c, s);
	puts("fine");
	return 0;
}
