//! Logs for the tests, written from the formats of the sources that the decoders name; hosts and
//! addresses are made up.

/// Two hosts, two GPUs each, over two eRDMA-like RoCE devices with GPUDirect: NCCL 2.21 and
/// nccl-tests 2.13.
pub const ALL_REDUCE: &str = "\
# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1201 on    gpu-01 device  0 [0x1b] NVIDIA A100-SXM4-80GB
#  Rank  1 Group  0 Pid   1202 on    gpu-01 device  1 [0x43] NVIDIA A100-SXM4-80GB
#  Rank  2 Group  0 Pid   1301 on    gpu-02 device  0 [0x1b] NVIDIA A100-SXM4-80GB
#  Rank  3 Group  0 Pid   1302 on    gpu-02 device  1 [0x43] NVIDIA A100-SXM4-80GB
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    35.21    0.00    0.00      0    34.80    0.00    0.00      0
       65536         16384     float     sum      -1    98.34    0.67    1.00      0    97.90    0.67    1.00      0
   268435456      67108864     float     sum      -1  16320.1   16.45   24.67      0  16330.8   16.44   24.66      0
  8589934592    2147483648     float     sum      -1   485120   17.71   26.56      0   484900   17.72   26.57      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 13.2121
#
";

/// The two largest sizes of it as `-J` writes them.
pub const JSON: &str = concat!(
    r#"{"version":2,"start_time":"2026-01-01 00:00:00","args":["\/opt\/nccl-tests\/all_reduce_perf","-b","256M","-e","8G","-J","#,
    r#""out.json"],"env":["HOME=\/root","TOKEN=made-up","NCCL_DEBUG=INFO","NCCL_IB_HCA==mlx5_0,mlx5_1"],"nccl_version":22105,"c"#,
    r#"onfig":{"nthreads":1,"ngpus":1,"minimum_bytes":268435456,"maximum_bytes":8589934592,"step_factor":2,"warmup_iters":1,"it"#,
    r#"erations":20,"aggregated_iterations":1,"validation":1,"graph":0,"blocking_collectives":"false","per_iter_timing":"false""#,
    r#","parallel_init":"false","devices":[{"rank":0,"group":0,"pid":1201,"hostname":"gpu-01","device":0,"device_hex":"0000:1b:"#,
    r#"00","device_info":"NVIDIA A100-SXM4-80GB"},{"rank":1,"group":0,"pid":1202,"hostname":"gpu-01","device":1,"device_hex":"0"#,
    r#"000:1b:00","device_info":"NVIDIA A100-SXM4-80GB"},{"rank":2,"group":0,"pid":1203,"hostname":"gpu-02","device":0,"device_"#,
    r#"hex":"0000:1b:00","device_info":"NVIDIA A100-SXM4-80GB"},{"rank":3,"group":0,"pid":1204,"hostname":"gpu-02","device":1,""#,
    r#"device_hex":"0000:1b:00","device_info":"NVIDIA A100-SXM4-80GB"}]},"results":[{"size":268435456,"count":67108864,"type":""#,
    r#"float","redop":"sum","root":"    -1","out_of_place":{"time":16320.100000,"alg_bw":16.450000,"bus_bw":24.670000,"nwrong":"#,
    r#"0.000000},"in_place":{"time":16320.100000,"alg_bw":16.450000,"bus_bw":24.670000,"nwrong":0.000000},"actual_iterations":2"#,
    r#"0,"experiment_name":"all_reduce_perf"},{"size":8589934592,"count":2147483648,"type":"float","redop":"sum","root":"    -1"#,
    r#"","out_of_place":{"time":485120.000000,"alg_bw":17.710000,"bus_bw":26.560000,"nwrong":0.000000},"in_place":{"time":48490"#,
    r#"0.000000,"alg_bw":17.710000,"bus_bw":26.560000,"nwrong":0.000000},"actual_iterations":20,"experiment_name":"all_reduce_p"#,
    r#"erf"}],"out_of_bounds":{"count":0,"okay":"true"},"average_bus_bandwidth":{"bandwidth":24.675000,"okay":"unchecked"},"err"#,
    r#"ors":[],"end_time":"2026-01-01 00:00:30"}"#,
);

/// What NCCL says of one rank: over RDMA.
pub fn render_rank_log(host: &str, pid: u32, rank: u32) -> String {
    let device = rank % 2;
    let me = format!("{host}:{pid}:{pid} [{device}] NCCL INFO");
    format!(
        "{me} Bootstrap : Using eth0:10.0.0.1<0>\n\
         {me} NCCL_SOCKET_IFNAME set by environment to eth0\n\
         {me} NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n\
         {me} Using network IB\n\
         {me} ncclCommInitRank comm 0x5581 rank {rank} nranks 4 cudaDev {device} nvmlDev {device} \
         busId 1b000 commId 0x9 - Init START\n\
         {me} NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'\n\
         {me} GPU Direct RDMA Enabled for GPU {device} / HCA {device} (distance 4 <= 5), read 0 \
         mode Default\n\
         {me} Channel 00/0 : {rank}[{device}] -> 1[1] via P2P/CUMEM/read\n\
         {me} Channel 00/0 : 3[1] -> {rank}[{device}] [receive] via NET/IB/0/GDRDMA\n\
         {me} Channel 00/0 : {rank}[{device}] -> 2[0] [send] via NET/IB/0/GDRDMA\n\
         {me} ncclCommInitRank comm 0x5581 rank {rank} nranks 4 cudaDev {device} nvmlDev {device} \
         busId 1b000 commId 0x9 - Init COMPLETE\n"
    )
}

/// The whole job.
pub fn render_job_log() -> String {
    let ranks = [
        ("gpu-01", 1201, 0),
        ("gpu-01", 1202, 1),
        ("gpu-02", 1301, 2),
        ("gpu-02", 1302, 3),
    ];
    let said: String = ranks
        .iter()
        .map(|(host, pid, number)| render_rank_log(host, *pid, *number))
        .collect();
    format!("NCCL version 2.21.5+cuda12.4\n{said}{ALL_REDUCE}")
}

/// A ring of the lab: two machines, Soft-RoCE, no GPU and no NCCL. As `ring_all_reduce` prints it.
pub fn render_ring_log(network: &str) -> String {
    let rank = |rank: u32| {
        let host = format!("node{}", rank + 1);
        let me = format!("{host}:31:31 [0] RING INFO");
        let chosen = match network {
            "IB" => format!("{me} NET/IB : Using [0]rxe_ens1f0np0:1/RoCE ; no OOB"),
            _ => format!(
                "{me} NCCL_IB_DISABLE set by environment to 1\n\
                 {me} NET/Socket : Using [0]ens1f0np0:192.168.77.1<0>"
            ),
        };
        format!(
            "{me} comm 0x1 rank {rank} nranks 2 - Init START\n\
             {chosen}\n\
             {me} Using network {network}\n\
             {me} Channel 00/0 : {rank}[0] -> {}[0] [send] via NET/{network}/0\n\
             {me} comm 0x1 rank {rank} nranks 2 - Init COMPLETE\n",
            1 - rank
        )
    };
    format!(
        "# Collective test starting: ring_all_reduce\n\
         # no GPU and no NCCL: ranks of MPI in a ring, memory of the hosts\n\
         # nThread 1 nGpus 0 minBytes 2097152 maxBytes 4194304 step: 2(factor) warmup iters: 1 \
         iters: 3 validation: 1\n\
         #\n\
         # Using devices\n\
         #  Rank  0 on      node1 without a GPU\n\
         #  Rank  1 on      node2 without a GPU\n\
         #\n\
         #       size         count      type   redop    root     time   algbw   busbw #wrong\n\
         #        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n\
         {}{}{:>12}  {:>12}     float     sum      -1  52428.8  0.0400  0.0400      0\n\
         {:>12}  {:>12}     float     sum      -1 100663.3  0.0417  0.0417      0\n\
         # Out of bounds values : 0 OK\n\
         # Avg bus bandwidth    : 0.04085\n\
         #\n",
        rank(0),
        rank(1),
        2_097_152,
        524_288,
        4_194_304,
        1_048_576
    )
}
