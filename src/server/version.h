/*
 * server/version.h - which release this is; the build says it.
 */
#pragma once

#ifndef OPENSANDBOX_VERSION
#error "the build defines OPENSANDBOX_VERSION"
#endif
