/*
 * server/images.c - aliases are the operator's word: a name is never taken for something it was not
 * declared to be.
 */
#include "server/images.h"

#include <string.h>

#include "base/view.h"
#include "codec/glob.h"
#include "server/config.h"

const char *images_resolve(const struct config *config, const char *uri)
{
	if (strcmp(uri, "host") == 0)
		return "host";
	for (size_t i = 0; i < config->aliases_n; i++)
		if (glob_match(view_of(config->aliases[i].pattern), view_of(uri)))
			return config->aliases[i].image;
	return NULL;
}
