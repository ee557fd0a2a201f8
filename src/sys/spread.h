/*
 * sys/spread.h - where on a disk directories come to lie.
 */
#pragma once

/* Asks the file system to put directories that are made in this one apart from each other, like
 * homes of different people.  Those that know no such wish are as good without. */
void spread_children(int dir_fd);
