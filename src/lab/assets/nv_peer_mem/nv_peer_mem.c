// SPDX-License-Identifier: GPL-2.0
/*
 * A STAND-IN for nv_peer_mem 1.0-9: it bears the name and the version and registers nothing with the RDMA core.
 * The lab has no GPU; this lets fetching, building, loading and removing an out-of-tree module be done for real.
 */
#include <linux/module.h>
#include <linux/printk.h>

static int __init stand_in_init(void)
{
	pr_info("stand-in of the railwright lab loaded, no GPU memory is reachable through it\n");
	return 0;
}

static void __exit stand_in_exit(void)
{
}

module_init(stand_in_init);
module_exit(stand_in_exit);
MODULE_DESCRIPTION("stand-in for nv_peer_mem (railwright lab)");
MODULE_LICENSE("GPL");
MODULE_VERSION("1.0-9");
