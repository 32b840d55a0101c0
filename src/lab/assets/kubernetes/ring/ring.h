/* A ring of MPI's ranks: what the transports offer to the all-reduce, and what all parts know of the job. */
#ifndef RING_H
#define RING_H
#include <stddef.h>
#include <stdint.h>

/* One rank. */
struct ring {
	int rank, ranks, next, previous;
	char host[256];
	int speaks;		/* NCCL_DEBUG is set: it says what it uses */
	unsigned char *outbox;	/* a slot for each step of an all-reduce, from which the next rank is sent to */
	unsigned char *inbox;	/* the same, into which the previous one sends */
	size_t slot, slots;	/* bytes of a slot, and how many there are */
};

/* What carries the slots. Step n of every turn uses slot n: when a rank begins its next turn, the one after it has emptied the
 * slots that this will fill first, as it could not have taken part in the end of the last turn before. */
struct transport {
	const char *name;
	/* All ranks together; 0 where it is there. */
	int (*open)(struct ring *ring);
	/* Sends the first `out` bytes of a slot to the next rank, and waits until `in` bytes have come into it from the previous one. */
	void (*exchange)(struct ring *ring, size_t slot, size_t out, size_t in);
};

extern const struct transport verbs, sockets;

/* A line in the form of NCCL's, but by another name: nobody is to take this for NCCL. */
void say(const struct ring *ring, const char *level, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The end of the job, with a line that says why. */
void give_up(const struct ring *ring, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
/* A variable that the job obeys, which it says once; NULL where it is not set. */
const char *obeyed(const struct ring *ring, const char *name);
/* Whether a name is one of a list as NCCL has them: `=` before it for whole names, `^` for all but these, `:PORT` left aside. */
int listed(const char *list, const char *name);
#endif
