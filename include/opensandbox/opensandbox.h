/*
 * opensandbox/opensandbox.h - the whole library.
 *
 *     osb_client *client = NULL;
 *     osb_sandbox *box = NULL;
 *     osb_create what = OSB_CREATE_INIT;
 *     osb_error e;
 *
 *     what.image = "python:3.12";
 *     if (osb_client_new(NULL, &client, &e) < 0 ||
 *         osb_sandbox_create(client, &what, NULL, &box, &e) < 0)
 *             fprintf(stderr, "%s\n", e.message);
 */
#pragma once

#include <opensandbox/client.h>
#include <opensandbox/command.h>
#include <opensandbox/error.h>
#include <opensandbox/files.h>
#include <opensandbox/network.h>
#include <opensandbox/sandbox.h>
#include <opensandbox/snapshot.h>
#include <opensandbox/storage.h>
#include <opensandbox/terminal.h>
#include <opensandbox/tunnel.h>
