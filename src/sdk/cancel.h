/*
 * sdk/cancel.h - a descriptor that becomes readable when a caller has changed his mind.
 */
#pragma once

struct osb_cancel {
	int fd;
};
