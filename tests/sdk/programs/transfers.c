/* transfers.c - files: whole, streamed from files and pipes, in parts, and what is done to them. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

#define LARGE (24u << 20)

static void whole(osb_sandbox *s)
{
	const char *paths[] = {"/tmp/sdk/a name & more.txt", NULL}, *gone[] = {"/tmp/sdk", NULL};
	osb_file_mode mode = {.mode = 0600, .owner = "root"};
	osb_file_list *list = NULL;
	char *bytes = NULL;
	int64_t count = 0;
	size_t n = 0;

	OK(osb_file_write(s, paths[0], "a\0b old old", 11, &mode, NULL, &e));
	OK(osb_file_replace(s, paths[0], "old", "new", NULL, &count, &e));
	CHECK(count == 2);
	OK(osb_file_read(s, paths[0], NULL, &bytes, &n, &e));
	CHECK(n == 11 && memcmp(bytes, "a\0b new new", 12) == 0);
	osb_free(bytes);
	OK(osb_file_stat(s, paths, NULL, &list, &e));
	CHECK(list->n == 1 && list->items[0].size == 11 && list->items[0].mode == 0600);
	CHECK(strcmp(list->items[0].type, "file") == 0 && list->items[0].modified_at);
	osb_file_list_free(list);
	mode.mode = 0755;
	OK(osb_file_set_mode(s, paths[0], &mode, NULL, &e));
	OK(osb_file_move(s, paths[0], "/tmp/sdk/moved/b.txt", NULL, &e));
	OK(osb_file_search(s, "/tmp/sdk", "*.txt", NULL, &list, &e));
	CHECK(list->n == 1 && list->items[0].mode == 0755);
	osb_file_list_free(list);
	OK(osb_directory_list(s, "/tmp/sdk", 2, NULL, &list, &e));
	CHECK(list->n == 2);
	osb_file_list_free(list);
	CHECK(osb_file_stat(s, paths, NULL, &list, &e) == OSB_ERR_NOT_FOUND);
	CHECK(strcmp(e.api_code, "FILE_NOT_FOUND") == 0);
	OK(osb_directory_delete(s, gone, NULL, &e));
	OK(osb_directory_create(s, gone, NULL, NULL, &e));
	OK(osb_file_delete(s, paths, NULL, &e));
}

static int seen(void *arg, int64_t done, int64_t total)
{
	int64_t *last = arg;

	CHECK(done > last[0] && (total < 0 || done <= total));
	last[0] = done;
	last[1] = total;
	return 0;
}

static char *pattern(void)
{
	char *bytes = malloc(LARGE);

	for (size_t i = 0; bytes && i < LARGE; i++)
		bytes[i] = (char)(i * 2654435761u >> 24);
	return bytes;
}

static int scratch(const char *name, const char *bytes)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0);
	for (size_t done = 0; bytes && done < LARGE;) {
		ssize_t n = write(fd, bytes + done, LARGE - done);

		CHECK(n > 0);
		done += (size_t)n;
	}
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static void same(int fd, const char *bytes, size_t n)
{
	char block[65536];
	size_t at = 0;
	ssize_t got;

	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	while ((got = read(fd, block, sizeof(block))) > 0) {
		CHECK(at + (size_t)got <= n && memcmp(block, bytes + at, (size_t)got) == 0);
		at += (size_t)got;
	}
	CHECK(at == n);
}

static void streamed(osb_sandbox *s, const char *place)
{
	int64_t up[2] = {0, 0}, down[2] = {0, 0};
	osb_transfer upload = {seen, up}, download = {seen, down};
	char *bytes = pattern(), in[512], out[512];
	int from, to;

	snprintf(in, sizeof(in), "%s/in", place);
	snprintf(out, sizeof(out), "%s/out", place);
	from = scratch(in, bytes);
	to = scratch(out, NULL);
	OK(osb_file_upload(s, from, "/tmp/large", NULL, &upload, NULL, &e));
	CHECK(up[0] == LARGE && up[1] == LARGE);
	OK(osb_file_download(s, "/tmp/large", to, &download, NULL, &e));
	CHECK(down[0] == LARGE && down[1] == LARGE);
	same(to, bytes, LARGE);
	CHECK(ftruncate(to, 0) == 0 && lseek(to, 0, SEEK_SET) == 0);
	OK(osb_file_download_range(s, "/tmp/large", 1000, 1999, to, NULL, NULL, &e));
	same(to, bytes + 1000, 1000);
	CHECK(osb_file_download(s, "/tmp/nothing", to, NULL, NULL, &e) == OSB_ERR_NOT_FOUND);
	close(from);
	close(to);
	free(bytes);
}

/* Nobody knows how long a pipe is. */
static void from_pipe(osb_sandbox *s)
{
	char *bytes = NULL;
	int ends[2];
	size_t n = 0;

	CHECK(pipe(ends) == 0 && write(ends[1], "through a pipe", 14) == 14);
	close(ends[1]);
	OK(osb_file_upload(s, ends[0], "/tmp/piped", NULL, NULL, NULL, &e));
	close(ends[0]);
	OK(osb_file_read(s, "/tmp/piped", NULL, &bytes, &n, &e));
	CHECK(n == 14 && memcmp(bytes, "through a pipe", 14) == 0);
	osb_free(bytes);
}

int main(int argc, char **argv)
{
	osb_client *c = connect_client();
	osb_sandbox *s = make_sandbox(c);

	CHECK(argc > 1);
	whole(s);
	streamed(s, argv[1]);
	from_pipe(s);
	finish(c, s);
	puts("fine");
	return 0;
}
