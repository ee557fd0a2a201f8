/*
 * warden/doomed.h - cgroups of dead boxes that the kernel still calls busy: removed as soon as it
 * lets us.
 */
#pragma once

struct cgroup;
struct warden;

void doomed_add(struct warden *w, struct cgroup *g); /* takes it; removes it now if that works */
void doomed_retry(void *warden);		     /* the timer's callback */
void doomed_finish(struct warden *w); /* at the end: waits a little, then leaves them */
