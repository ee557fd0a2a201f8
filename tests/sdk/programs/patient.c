/* patient.c - asks again and again, while the server is killed and started. */
#include <unistd.h>

#include "check.h"

int main(int argc, char **argv)
{
	osb_client *c = connect_client();
	osb_sandbox *s = NULL;
	long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 0;

	CHECK(rounds > 0);
	OK(osb_sandbox_open(c, argv[1], &s, &e));
	for (long i = 0; i < rounds; i++) {
		osb_sandbox_info *info = NULL;

		OK(osb_sandbox_get(s, NULL, &info, &e));
		CHECK(strcmp(info->state, "Running") == 0);
		osb_sandbox_info_free(info);
		OK(osb_sandbox_ping(s, NULL, &e));
		printf("%ld\n", i);
		fflush(stdout);
		usleep(20000);
	}
	osb_sandbox_free(s);
	osb_client_free(c);
	return 0;
}
