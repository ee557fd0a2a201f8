/*
 * Whatever is found in a packet is in its bytes; cutting it off never finds something else.
 */
#include <stdlib.h>
#include <string.h>

#include "codec/ip_packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ip_packet whole, cut;

	if (!ip_packet_read(view_mem(data, size), &whole))
		return 0;
	must(size >= (whole.v6 ? 40u : 20u));
	must(memcmp(whole.to, data + (whole.v6 ? 24 : 16), whole.v6 ? 16 : 4) == 0);
	must(whole.port == 0 || whole.protocol == 6 || whole.protocol == 17);
	if (ip_packet_read(view_mem(data, size - 1), &cut))
		must(cut.v6 == whole.v6 && (cut.port == whole.port || cut.port == 0));
	return 0;
}
