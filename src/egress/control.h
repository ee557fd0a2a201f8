/*
 * egress/control.h - the connection with the server's worker: which sandboxes there are, and what
 * has changed about them (codec/egress_msg.h).
 *
 * The supervisor passes a new one whenever the worker has started.  Sandboxes stay while there is
 * none; changes wait for the next worker, which says anew what it knows.
 */
#pragma once

#include "base/macro.h"

struct box;
struct control;
struct egress;
struct err;

/* `supervisor_fd` is taken.  The loop stops when the supervisor has gone. */
osb_must_check int control_new(struct egress *g, int supervisor_fd, struct control **ret,
			       struct err *e);
void control_free(struct control *c); /* accepts NULL */

/* Sends the box's document.  The answer arrives at box_saved(); so does the end of the worker. */
void control_save(struct control *c, struct box *b);
