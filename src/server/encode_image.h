/*
 * server/encode_image.h - images and pulls as the API writes them.
 */
#pragma once

struct app;
struct image;
struct json_writer;
struct pull;

void encode_image(struct json_writer *w, struct app *app, const struct image *image);
void encode_host_image(struct json_writer *w, struct app *app);
void encode_pull(struct json_writer *w, const struct pull *p);
