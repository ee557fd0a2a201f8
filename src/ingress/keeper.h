/*
 * ingress/keeper.h - with TLS there are two processes: one that may read the certificate's files
 * and meets nobody, and one that meets clients and sees no file.
 */
#pragma once

struct tls_files;
struct worker_means;

/* Starts the worker and passes new certificates on to it.  Returns the program's exit code. */
int keeper_run(struct tls_files *files, struct worker_means *means);
