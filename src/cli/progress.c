/*
 * cli/progress.c - see progress.h.
 */
#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "cli/cli.h"

#define EVERY_US 100000
#define BAR	 24

static void size_text(int64_t n, char ret[24])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double amount = (double)n;
	size_t unit = 0;

	for (; amount >= 1024 && unit + 1 < ARRAY_LEN(units); unit++)
		amount /= 1024;
	snprintf(ret, 24, unit ? "%.1f %s" : "%.0f %s", amount, units[unit]);
}

int progress_step(void *arg, int64_t done, int64_t total)
{
	struct progress *p = arg;
	uint64_t now = clock_mono_us();
	char sofar[24], all[24];

	if (!p->cli->progress || (p->drawn && now - p->shown_us < EVERY_US && done != total))
		return 0;
	p->shown_us = now;
	p->drawn = true;
	size_text(done, sofar);
	if (total > 0) {
		int full = (int)(done * BAR / total);

		size_text(total, all);
		fprintf(stderr, "\r%s [%.*s%*s] %s of %s \033[K", p->what, full,
			"########################", BAR - full, "", sofar, all);
	} else {
		fprintf(stderr, "\r%s %s \033[K", p->what, sofar);
	}
	return 0;
}

void progress_wait(struct progress *p)
{
	if (!p->cli->progress)
		return;
	p->drawn = true;
	fprintf(stderr, "\r%s ...\033[K", p->what);
}

void progress_end(struct progress *p)
{
	if (p->drawn)
		fputs("\r\033[K", stderr);
	p->drawn = false;
}
