/*
 * execd/exit_record.h - how the entrypoint ended, left for whoever asks later.
 */
#pragma once

#include <stdint.h>

struct options;

struct exit_record {
	uint64_t started_ns; /* wall clock; 0 = it never ran */
	int exit_code;
	int signal;	    /* 0: none */
	const char *error;  /* why it never ran, or NULL */
	const char *reason; /* one word for programs, or NULL */
};

/* {"exit_code","signal"?,"error"?,"reason"?,"started_at"?,"finished_at"} goes to the status file
 * and to the status descriptor, where there are such.  What fails is logged. */
void exit_record_write(const struct options *o, const struct exit_record *record);
