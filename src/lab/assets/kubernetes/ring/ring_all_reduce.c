/* ring_all_reduce: what nccl-tests' all_reduce_perf does, for machines without a GPU. MPI starts the ranks and tells them of each other,
 * as it does for NCCL; the data goes from rank to rank around a ring, over verbs or over TCP. It obeys the variables by which a
 * job tells NCCL its devices, takes the arguments of nccl-tests, and prints their table. It is not NCCL and says so.
 *   mpirun ... ring_all_reduce -b 1K -e 4M -f 2 -n 5 [-w 1] [-c 0] */
#include <getopt.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ring.h"

void say(const struct ring *ring, const char *level, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	printf("%s:%d:%d [%d] RING %s %s\n", ring->host, getpid(), getpid(), 0, level, text);
	fflush(stdout);
}

void give_up(const struct ring *ring, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	say(ring, "WARN", "%s", text);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

const char *obeyed(const struct ring *ring, const char *name)
{
	const char *value = getenv(name);

	if (value && ring->speaks)
		say(ring, "INFO", "%s set by environment to %s", name, value);
	return value;
}

int listed(const char *list, const char *name)
{
	int is_not = *list == '^', is_found = 0, is_whole;

	list += is_not;
	is_whole = *list == '=';
	list += is_whole;
	while (*list) {
		size_t length = strcspn(list, ","), of_name = strcspn(list, ",:");

		if (of_name && !strncmp(list, name, of_name) && (!is_whole || strlen(name) == of_name))
			is_found = 1;
		list += length + (list[length] == ',');
	}
	return is_found != is_not;
}

static size_t size(const char *text)
{
	char *end;
	double value = strtod(text, &end);

	switch (*end) {
	case 'G': case 'g': return (size_t)(value * (1 << 30));
	case 'M': case 'm': return (size_t)(value * (1 << 20));
	case 'K': case 'k': return (size_t)(value * (1 << 10));
	default: return (size_t)value;
	}
}

/* Chunk n of so many elements that are shared among the ranks: where it begins, and how many elements it has. */
static size_t chunk(const struct ring *ring, size_t count, int n, size_t *begins)
{
	size_t each = count / ring->ranks, more = count % ring->ranks, at = n;

	*begins = at * each + (at < more ? at : more);
	return each + (at < more);
}

/* After ranks - 1 steps each rank has the whole sum of one chunk, after as many more all of them. */
static void all_reduce(struct ring *ring, const struct transport *by, float *data, size_t count)
{
	int n = ring->ranks;

	for (int step = 0; step < 2 * (n - 1); step++) {
		int adds = step < n - 1;
		int sent = adds ? (ring->rank - step + n) % n : (ring->rank + 1 - (step - (n - 1)) + n) % n;
		size_t from, to;
		size_t going = chunk(ring, count, sent, &from), coming = chunk(ring, count, (sent - 1 + n) % n, &to);
		const float *in = (const float *)(ring->inbox + step * ring->slot);

		memcpy(ring->outbox + step * ring->slot, data + from, going * sizeof *data);
		by->exchange(ring, step, going * sizeof *data, coming * sizeof *data);
		for (size_t i = 0; i < coming; i++)
			data[to + i] = adds ? data[to + i] + in[i] : in[i];
	}
}

/* Small whole numbers, whose sum a float holds without error. */
static float given(int rank, size_t i)
{
	return (float)((rank + 1) * (i % 13 + 1));
}

static void fill(const struct ring *ring, float *data, size_t count)
{
	for (size_t i = 0; i < count; i++)
		data[i] = given(ring->rank, i);
}

/* Elements that are not the sum over all ranks, on all ranks. */
static long wrong(const struct ring *ring, const float *data, size_t count)
{
	int all = ring->ranks * (ring->ranks + 1) / 2;
	long own = 0, sum;

	for (size_t i = 0; i < count; i++)
		own += data[i] != (float)(all * (i % 13 + 1));
	MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	return sum;
}

static void head(const struct ring *ring, size_t from, size_t to, int factor, int warm, int turns, int checks)
{
	char (*hosts)[sizeof ring->host] = calloc(ring->ranks, sizeof *hosts);

	MPI_Gather(ring->host, sizeof ring->host, MPI_CHAR, hosts, sizeof ring->host, MPI_CHAR, 0, MPI_COMM_WORLD);
	if (!ring->rank) {
		printf("# Collective test starting: ring_all_reduce\n# no GPU and no NCCL: ranks of MPI in a ring, memory of the hosts\n");
		printf("# nThread 1 nGpus 0 minBytes %zu maxBytes %zu step: %d(factor) warmup iters: %d iters: %d validation: %d\n#\n",
		       from, to, factor, warm, turns, checks);
		printf("# Using devices\n");
		for (int rank = 0; rank < ring->ranks; rank++)
			printf("#  Rank %2d on %10s without a GPU\n", rank, hosts[rank]);
		printf("#\n#       size         count      type   redop    root     time   algbw   busbw #wrong\n");
		printf("#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n");
		fflush(stdout);
	}
	free(hosts);
}

/* One size: its row, its busbw, and what arrived wrong. */
static double measure(struct ring *ring, const struct transport *by, size_t bytes, int warm, int turns, int checks, long *errors)
{
	size_t count = bytes / sizeof(float);
	float *data = malloc(bytes + sizeof *data);
	double began = 0, own, time, algbw, busbw;
	char found[24] = "N/A";

	for (int turn = -warm; turn < turns; turn++) {
		fill(ring, data, count);
		if (!turn)
			MPI_Barrier(MPI_COMM_WORLD), began = MPI_Wtime();
		all_reduce(ring, by, data, count);
	}
	own = (MPI_Wtime() - began) / turns;
	MPI_Allreduce(&own, &time, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	if (checks) {
		long of_size = wrong(ring, data, count);

		*errors += of_size;
		snprintf(found, sizeof found, "%ld", of_size);
	}
	free(data);
	algbw = bytes / time / 1e9;
	busbw = algbw * 2 * (ring->ranks - 1) / ring->ranks;
	if (!ring->rank)
		printf("%12zu  %12zu     float     sum      -1 %8.1f %7.4f %7.4f %6s\n", bytes, count, time * 1e6, algbw, busbw, found);
	fflush(stdout);
	return busbw;
}

int main(int argc, char **argv)
{
	struct ring ring = { 0 };
	const struct transport *by = &verbs;
	size_t from = 1 << 10, to = 1 << 20, sizes = 0;
	int factor = 2, turns = 5, warm = 1, checks = 1, option;
	const char *net, *off;
	double sum = 0;
	long errors = 0;

	MPI_Init(&argc, &argv);
	while ((option = getopt(argc, argv, "b:e:f:g:t:c:n:w:")) != -1) {
		switch (option) {
		case 'b': from = size(optarg); break;
		case 'e': to = size(optarg); break;
		case 'f': factor = atoi(optarg); break;
		case 'c': checks = atoi(optarg); break;
		case 'n': turns = atoi(optarg); break;
		case 'w': warm = atoi(optarg); break;
		case 'g': case 't': break;	/* GPUs and threads of a rank */
		default: MPI_Abort(MPI_COMM_WORLD, 64);
		}
	}
	MPI_Comm_rank(MPI_COMM_WORLD, &ring.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ring.ranks);
	gethostname(ring.host, sizeof ring.host - 1);
	ring.speaks = getenv("NCCL_DEBUG") && strcmp(getenv("NCCL_DEBUG"), "WARN");
	if (ring.ranks < 2 || from < 4 || to < from || factor < 2 || turns < 1)
		give_up(&ring, "a ring needs two ranks, -b of 4 bytes and more, -e not below it, -f from 2 on and -n from 1 on");
	ring.next = (ring.rank + 1) % ring.ranks;
	ring.previous = (ring.rank + ring.ranks - 1) % ring.ranks;
	ring.slots = 2 * (ring.ranks - 1);
	ring.slot = (to / ring.ranks + 2 * sizeof(float) + 63) / 64 * 64;
	if (posix_memalign((void **)&ring.outbox, 4096, ring.slots * ring.slot) || posix_memalign((void **)&ring.inbox, 4096, ring.slots * ring.slot))
		give_up(&ring, "no memory for %zu slots of %zu bytes", ring.slots, ring.slot);
	head(&ring, from, to, factor, warm, turns, checks);
	if (ring.speaks)
		say(&ring, "INFO", "comm 0x1 rank %d nranks %d - Init START", ring.rank, ring.ranks);
	off = obeyed(&ring, "NCCL_IB_DISABLE");
	net = obeyed(&ring, "NCCL_NET");
	if ((off && atoi(off)) || (net && !strcmp(net, "Socket")) || by->open(&ring))
		by = &sockets, by->open(&ring);
	if (ring.speaks) {
		say(&ring, "INFO", "Using network %s", by->name);
		say(&ring, "INFO", "Channel 00/0 : %d[0] -> %d[0] [send] via NET/%s/0", ring.rank, ring.next, by->name);
		say(&ring, "INFO", "comm 0x1 rank %d nranks %d - Init COMPLETE", ring.rank, ring.ranks);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (size_t bytes = from; bytes <= to; bytes *= factor, sizes++)
		sum += measure(&ring, by, bytes / sizeof(float) * sizeof(float), warm, turns, checks, &errors);
	if (!ring.rank)
		printf("# Out of bounds values : %ld %s\n# Avg bus bandwidth    : %g\n#\n", errors, errors ? "FAILED" : "OK", sum / sizes);
	fflush(stdout);
	MPI_Finalize();
	return errors != 0;
}
