/*
 * sys/spread.h - where on a disk directories come to lie.
 */
#pragma once

#include <stdbool.h>

/* Asks the file system to put directories that are made in this one apart from each other, like
 * homes of different people.  Does it? */
bool spread_children(int dir_fd);
