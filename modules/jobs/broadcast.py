# What `railwright job run pytorch` runs on every GPU: the training of the page on RoCE v2 and GPUDirect, which joins the ranks by NCCL and sends
# the model of rank 0 to all others; then a sum over all ranks, step by step, as a training sums up its gradients.
#
# Sources: the page on RoCE v2 and GPUDirect in distributed clusters for AI (init_process_group with nccl and env://, Linear(10, 10), broadcast
# from rank 0); PyTorch documentation, torch.distributed; the line of a step is that of NVIDIA/Megatron-LM (megatron/training/training.py).
import os
import sys
import time

import torch
import torch.distributed as dist

steps, mebibytes = int(sys.argv[1]), int(sys.argv[2])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group(backend="nccl", init_method="env://")
rank, world = dist.get_rank(), dist.get_world_size()

# Each rank begins with another model, so that one which is alike afterwards was received.
torch.manual_seed(rank)
model = torch.nn.Linear(10, 10).cuda()
with torch.no_grad():
    for param in model.parameters():
        dist.broadcast(param, src=0)
    mine = torch.cat([param.flatten() for param in model.parameters()])
least, most = mine.clone(), mine.clone()
dist.all_reduce(least, op=dist.ReduceOp.MIN)
dist.all_reduce(most, op=dist.ReduceOp.MAX)
if not torch.equal(least, most):
    sys.exit(f"rank {rank}: the model is not the same on all {world} ranks after the broadcast")

gradients = torch.empty(mebibytes << 18, dtype=torch.float32, device="cuda")
for step in range(1, steps + 1):
    gradients.fill_(1.0)
    torch.cuda.synchronize()
    begun = time.monotonic()
    dist.all_reduce(gradients)
    torch.cuda.synchronize()
    took_ms = (time.monotonic() - begun) * 1000
    if gradients[0].item() != world or gradients[-1].item() != world:
        sys.exit(f"rank {rank}: the sum over {world} ranks is wrong in step {step}")
    if rank == 0:
        print(f" iteration {step:8d}/{steps:8d} | elapsed time per iteration (ms): {took_ms:.3f} |", flush=True)
if rank == 0:
    print(f"the model of rank 0 is on all {world} ranks, and {steps} sums of {mebibytes} MiB are right", flush=True)
dist.destroy_process_group()
