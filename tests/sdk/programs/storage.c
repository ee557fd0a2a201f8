/* storage.c - an image and a volume out of an archive, used and removed. */
#include <fcntl.h>
#include <unistd.h>

#include "check.h"

static void volumes(osb_client *c, const char *archive)
{
	int fd = open(archive, O_RDONLY);
	char *json = NULL;

	CHECK(fd >= 0);
	OK(osb_volume_create(c, "sdk-volume", NULL, &json, &e));
	CHECK(strstr(json, "sdk-volume"));
	osb_free(json);
	CHECK(osb_volume_create(c, "sdk-volume", NULL, &json, &e) == OSB_ERR_CONFLICT);
	OK(osb_volume_fill(c, "sdk-volume", fd, NULL, NULL, &json, &e));
	osb_free(json);
	OK(osb_volume_get(c, "sdk-volume", NULL, &json, &e));
	CHECK(strstr(json, "sdk-volume"));
	osb_free(json);
	OK(osb_volume_list(c, 1, 10, NULL, &json, &e));
	CHECK(strstr(json, "sdk-volume"));
	osb_free(json);
	OK(osb_volume_delete(c, "sdk-volume", NULL, &e));
	CHECK(osb_volume_get(c, "sdk-volume", NULL, &json, &e) == OSB_ERR_NOT_FOUND);
	close(fd);
}

static void images(osb_client *c, const char *archive, const char *out)
{
	int from = open(archive, O_RDONLY), to = open(out, O_RDWR | O_CREAT | O_TRUNC, 0600);
	char *json = NULL;

	CHECK(from >= 0 && to >= 0);
	OK(osb_image_import(c, from, "sdk-image:1", NULL, NULL, &json, &e));
	CHECK(strstr(json, "sdk-image:1"));
	osb_free(json);
	OK(osb_image_get(c, "sdk-image:1", NULL, &json, &e));
	osb_free(json);
	OK(osb_image_list(c, 0, 0, NULL, &json, &e));
	CHECK(strstr(json, "sdk-image:1") && strstr(json, "pagination"));
	osb_free(json);
	OK(osb_image_export(c, "sdk-image:1", to, NULL, NULL, &e));
	CHECK(lseek(to, 0, SEEK_END) > 512);
	OK(osb_image_delete(c, "sdk-image:1", false, NULL, &e));
	CHECK(osb_image_get(c, "sdk-image:1", NULL, &json, &e) == OSB_ERR_NOT_FOUND);
	OK(osb_image_prune(c, false, NULL, &json, &e));
	CHECK(strstr(json, "removed"));
	osb_free(json);
	close(from);
	close(to);
}

int main(int argc, char **argv)
{
	osb_client *c = connect_client();

	CHECK(argc > 2);
	volumes(c, argv[1]);
	images(c, argv[1], argv[2]);
	finish(c, NULL);
	puts("fine");
	return 0;
}
