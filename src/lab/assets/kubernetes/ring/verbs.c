/* The ring over verbs: a reliable connection from each rank to the next, RDMA writes into the next rank's memory, and a number with the
 * last of each slot that tells it so. */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ring.h"

#define PIECE (1 << 20)		/* bytes of one write: Soft-RoCE takes 8 MiB at most */
#define WRITES 64		/* that are under way at once */

/* What a rank tells of itself to the one before it, which writes, and to the one after it, whose requests come. */
struct end {
	uint32_t qp_out, qp_in, packet, key;
	uint64_t inbox;
	int mtu;
	union ibv_gid gid;
};

static struct ibv_cq *done;
static struct ibv_qp *out_qp, *in_qp;
static struct ibv_mr *out_memory, *in_memory;
static struct end next, previous;
static size_t came;		/* slots that have come and were not waited for yet */

/* The address of RoCE version 2 by family, as NCCL looks for it; -1 where the port has none. */
static int address(struct ibv_context *device, int family, union ibv_gid *gid)
{
	struct ibv_gid_entry entries[64];
	ssize_t count = ibv_query_gid_table(device, entries, 64, 0);

	for (ssize_t i = 0; i < count; i++) {
		struct in6_addr as;

		memcpy(&as, &entries[i].gid, sizeof as);
		if (entries[i].gid_type == IBV_GID_TYPE_ROCE_V2 && !!IN6_IS_ADDR_V4MAPPED(&as) == (family == AF_INET)) {
			*gid = entries[i].gid;
			return entries[i].gid_index;
		}
	}
	return -1;
}

/* The first device that NCCL_IB_HCA does not leave out, that can be opened and whose port is active. */
static struct ibv_context *device(const struct ring *ring, struct ibv_port_attr *port)
{
	const char *names = obeyed(ring, "NCCL_IB_HCA");
	struct ibv_device **all = ibv_get_device_list(NULL);
	struct ibv_context *found = NULL;

	for (int i = 0; all && all[i] && !found; i++) {
		if (names && !listed(names, ibv_get_device_name(all[i])))
			continue;
		found = ibv_open_device(all[i]);	/* of a container that has no file of it only the name is there */
		if (found && (ibv_query_port(found, 1, port) || port->state != IBV_PORT_ACTIVE)) {
			ibv_close_device(found);
			found = NULL;
		}
	}
	if (all)
		ibv_free_device_list(all);
	return found;
}

static void ready(const struct ring *ring, struct ibv_qp *qp, uint32_t peer, const struct end *at, uint32_t packet, uint32_t own, int mtu, int index)
{
	const char *class = getenv("NCCL_IB_TC");
	struct ibv_qp_attr to = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	int failed = ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

	to = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = mtu, .dest_qp_num = peer, .rq_psn = packet,
		.max_dest_rd_atomic = 1, .min_rnr_timer = 12, .ah_attr = { .is_global = 1, .port_num = 1,
		.grh = { .dgid = at->gid, .sgid_index = index, .hop_limit = 64, .traffic_class = class ? atoi(class) : 0 } } };
	failed = failed ? failed : ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	to = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .sq_psn = own, .max_rd_atomic = 1 };
	failed = failed ? failed : ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (failed)
		give_up(ring, "Call to ibv_modify_qp failed with error %s", strerror(failed));
}

/* Room for one number: without it the previous rank would wait. */
static void expect(const struct ring *ring)
{
	struct ibv_recv_wr request = { 0 }, *bad;

	if (ibv_post_recv(in_qp, &request, &bad))
		give_up(ring, "Call to ibv_post_recv failed");
}

static int open_verbs(struct ring *ring)
{
	struct ibv_port_attr port = { 0 };
	struct ibv_context *context = device(ring, &port);
	struct end own = { 0 }, *all = calloc(ring->ranks, sizeof *all);
	const char *family = obeyed(ring, "NCCL_IB_ADDR_FAMILY");
	int index = -1, here, everywhere;

	if (context)
		index = address(context, family && !strcmp(family, "AF_INET6") ? AF_INET6 : AF_INET, &own.gid);
	if (!context && ring->speaks)
		say(ring, "INFO", "NET/IB : No device found.");
	here = index >= 0;
	/* A ring is of one kind: a rank without a device takes all others with it, and says so. */
	MPI_Allreduce(&here, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (!everywhere) {
		if (context && ring->speaks)
			say(ring, "INFO", "NET/IB : %s", here ? "another rank has no device" : "the port has no address of RoCE version 2");
		return -1;
	}
	say(ring, "INFO", "NET/IB : Using [0]%s:1/%s ; no OOB", ibv_get_device_name(context->device),
	    port.link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "IB");
	obeyed(ring, "NCCL_IB_TC");

	struct ibv_pd *domain = ibv_alloc_pd(context);
	size_t bytes = ring->slots * ring->slot;

	out_memory = domain ? ibv_reg_mr(domain, ring->outbox, bytes, 0) : NULL;
	in_memory = domain ? ibv_reg_mr(domain, ring->inbox, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) : NULL;
	if (!out_memory || !in_memory)
		give_up(ring, "Call to ibv_reg_mr failed with error %s", strerror(errno));
	done = ibv_create_cq(context, WRITES + 4 * ring->slots, NULL, NULL, 0);
	struct ibv_qp_init_attr wish = { .send_cq = done, .recv_cq = done, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = WRITES, .max_recv_wr = 4 * ring->slots, .max_send_sge = 1, .max_recv_sge = 1 } };
	out_qp = done ? ibv_create_qp(domain, &wish) : NULL;
	in_qp = done ? ibv_create_qp(domain, &wish) : NULL;
	if (!out_qp || !in_qp)
		give_up(ring, "Call to ibv_create_qp failed with error %s", strerror(errno));
	own.qp_out = out_qp->qp_num;
	own.qp_in = in_qp->qp_num;
	own.packet = 1000 + ring->rank;
	own.key = in_memory->rkey;
	own.inbox = (uint64_t)(uintptr_t)ring->inbox;
	own.mtu = port.active_mtu;
	MPI_Allgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, MPI_COMM_WORLD);
	next = all[ring->next];
	previous = all[ring->previous];
	free(all);
	ready(ring, out_qp, next.qp_in, &next, next.packet, own.packet, own.mtu < next.mtu ? own.mtu : next.mtu, index);
	ready(ring, in_qp, previous.qp_out, &previous, previous.packet, own.packet, own.mtu < previous.mtu ? own.mtu : previous.mtu, index);
	for (size_t i = 0; i < 4 * ring->slots; i++)
		expect(ring);
	return 0;
}

/* Takes what has ended; how many writes of ours are among it. */
static size_t ended(const struct ring *ring)
{
	struct ibv_wc one[16];
	int count = ibv_poll_cq(done, 16, one);
	size_t writes = 0;

	if (!count)
		sched_yield();	/* a machine of the lab has one processor, and it carries the packets too */
	for (int i = 0; i < count; i++) {
		if (one[i].status)
			give_up(ring, "NET/IB : Got completion with status=%d opcode=%d len=%u vendor err %u (%s)", one[i].status, one[i].opcode,
				one[i].byte_len, one[i].vendor_err, ibv_wc_status_str(one[i].status));
		if (one[i].opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
			came++;
			expect(ring);
		} else {
			writes++;
		}
	}
	return writes;
}

static void exchange(struct ring *ring, size_t slot, size_t out, size_t in)
{
	size_t begins = slot * ring->slot, at = 0, under_way = 0;

	(void)in;	/* the number tells that it is whole */
	/* An empty slot is told too. */
	do {
		size_t bytes = out - at < PIECE ? out - at : PIECE;
		int is_last = at + bytes == out;
		struct ibv_sge of = { (uint64_t)(uintptr_t)(ring->outbox + begins + at), bytes, out_memory->lkey };
		struct ibv_send_wr request = { .sg_list = &of, .num_sge = bytes ? 1 : 0, .imm_data = htonl(slot),
			.opcode = is_last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
			.wr.rdma = { next.inbox + begins + at, next.key } }, *bad;

		while (under_way == WRITES)
			under_way -= ended(ring);
		if (ibv_post_send(out_qp, &request, &bad))
			give_up(ring, "Call to ibv_post_send failed");
		under_way++;
		at += bytes;
	} while (at < out);
	while (under_way || !came)
		under_way -= ended(ring);
	came--;
}

const struct transport verbs = { "IB", open_verbs, exchange };
