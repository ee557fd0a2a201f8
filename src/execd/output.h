/*
 * execd/output.h - a pipe that a program writes to, turned into events as it is read.
 *
 * Lines become events; an unfinished line whose end is not there after 50 ms is sent, and what
 * still comes of it is an event of its own.
 * Nothing is lost, repeated or reordered, and no UTF-8 sequence is cut unless it stays incomplete.
 * Nothing is read while the receiver is behind, so memory stays bounded.
 */
#pragma once

#include <stdbool.h>

#include "base/macro.h"
#include "base/view.h"

struct app;
struct err;
struct output;

struct output_events {
	/* Whole events.  False: stop until output_resume(). */
	bool (*send)(void *arg, struct view events);
	/* Everything was delivered after output_end(). */
	void (*ended)(void *arg);
};

/* `fd` is the reading end of a pipe (taken, also on failure); `type` names the events. */
osb_must_check int output_new(struct app *app, int fd, const char *type,
			      const struct output_events *events, void *arg, struct output **ret,
			      struct err *e);

void output_resume(struct output *o);

/* Nobody listens any more: what comes is read and dropped, so that the program is not held up. */
void output_drop(struct output *o);

/* The program has ended: delivers what is in the pipe now, whoever else still holds it open, and
 * calls `ended`, maybe at once. */
void output_end(struct output *o);

void output_free(struct output *o); /* accepts NULL */
