/* The ring over TCP: a connection from each rank to the next, on the interface that NCCL_SOCKET_IFNAME names. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <mpi.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ring.h"

static int to_next = -1, from_previous = -1;

/* The first IPv4 address of an interface that is up and, where interfaces are named, one of them. */
static struct sockaddr_in own(const struct ring *ring)
{
	const char *names = obeyed(ring, "NCCL_SOCKET_IFNAME");
	struct sockaddr_in found = { 0 };
	struct ifaddrs *all, *one;
	char text[INET_ADDRSTRLEN];

	if (getifaddrs(&all))
		give_up(ring, "interfaces cannot be listed: %s", strerror(errno));
	for (one = all; one && !found.sin_family; one = one->ifa_next) {
		if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || !(one->ifa_flags & IFF_UP))
			continue;
		if (names ? !listed(names, one->ifa_name) : !!(one->ifa_flags & IFF_LOOPBACK))
			continue;
		memcpy(&found, one->ifa_addr, sizeof found);
		inet_ntop(AF_INET, &found.sin_addr, text, sizeof text);
		if (ring->speaks)
			say(ring, "INFO", "NET/Socket : Using [0]%s:%s<0>", one->ifa_name, text);
	}
	freeifaddrs(all);
	if (!found.sin_family)
		give_up(ring, "NET/Socket : no interface found");
	return found;
}

static int open_sockets(struct ring *ring)
{
	struct sockaddr_in address = own(ring), *all = calloc(ring->ranks, sizeof *all);
	int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	socklen_t length = sizeof address;

	to_next = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &length))
		give_up(ring, "NET/Socket : cannot listen: %s", strerror(errno));
	MPI_Allgather(&address, sizeof address, MPI_BYTE, all, sizeof address, MPI_BYTE, MPI_COMM_WORLD);
	if (connect(to_next, (struct sockaddr *)&all[ring->next], sizeof address))
		give_up(ring, "NET/Socket : rank %d cannot be reached: %s", ring->next, strerror(errno));
	from_previous = accept(listener, NULL, NULL);
	if (from_previous < 0)
		give_up(ring, "NET/Socket : rank %d did not come: %s", ring->previous, strerror(errno));
	close(listener);
	free(all);
	setsockopt(to_next, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	fcntl(to_next, F_SETFL, O_NONBLOCK);
	fcntl(from_previous, F_SETFL, O_NONBLOCK);
	return 0;
}

/* Bytes that went through, or none for now. */
static size_t went(const struct ring *ring, ssize_t done, int rank)
{
	if (!done || (done < 0 && errno != EAGAIN && errno != EINTR))
		give_up(ring, "NET/Socket : rank %d is gone: %s", rank, done ? strerror(errno) : "Connection closed by remote peer");
	return done < 0 ? 0 : done;
}

/* Both at once: with all ranks in a write nobody would read. */
static void exchange(struct ring *ring, size_t slot, size_t out, size_t in)
{
	unsigned char *from = ring->outbox + slot * ring->slot, *to = ring->inbox + slot * ring->slot;

	while (out || in) {
		struct pollfd ends[2] = { { out ? to_next : -1, POLLOUT, 0 }, { in ? from_previous : -1, POLLIN, 0 } };
		size_t done;

		poll(ends, 2, -1);
		if (ends[0].revents) {
			done = went(ring, send(to_next, from, out, MSG_NOSIGNAL), ring->next);
			from += done;
			out -= done;
		}
		if (ends[1].revents) {
			done = went(ring, recv(from_previous, to, in, 0), ring->previous);
			to += done;
			in -= done;
		}
	}
}

const struct transport sockets = { "Socket", open_sockets, exchange };
