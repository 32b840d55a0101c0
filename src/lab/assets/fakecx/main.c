// SPDX-License-Identifier: GPL-2.0
/*
 * fakecx - a make-believe ConnectX-6: a PCI host bridge with one SR-IOV capable function, a driver for it that bears
 * mlx5_core's name, and a client of the RDMA core that moves Soft-RoCE devices below the function, as on hardware.
 * Load it before ib_uverbs and ib_umad, so that those hang their character devices below the function, too.
 */
#include <linux/module.h>
#include <linux/platform_device.h>
#include <rdma/ib_verbs.h>
#include "fakecx.h"

static char *lower = "wire0";
module_param(lower, charp, 0444);
MODULE_PARM_DESC(lower, "netdev that carries the frames");
static char *ifname = "ens1f0np0";
module_param(ifname, charp, 0444);
MODULE_PARM_DESC(ifname, "name of the physical function's netdev");
static ushort device_id = 0x101b;
module_param(device_id, ushort, 0444);
MODULE_PARM_DESC(device_id, "PCI device (0x101b: ConnectX-6)");
static char *firmware = "20.39.2048 (MT_0000000223)";
module_param(firmware, charp, 0444);
MODULE_PARM_DESC(firmware, "firmware version to report");
static uint speed = 100000;
module_param(speed, uint, 0444);
MODULE_PARM_DESC(speed, "link speed to report, Mb/s");
static int bus_number = 0xc1;
module_param(bus_number, int, 0444);
MODULE_PARM_DESC(bus_number, "PCI bus to create");

static struct platform_device *platform;
static struct pci_bus *bus;
static struct pci_sysdata sysdata = { .node = NUMA_NO_NODE };
static struct resource bus_numbers = { .name = "fakecx bus", .flags = IORESOURCE_BUS };
static struct pci_dev *physical;

/* ---- the PCI driver ---- */

static int probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct net_device *wire = NULL, *dev;

	if (!pdev->is_virtfn) {
		wire = dev_get_by_name(&init_net, lower);
		if (!wire)
			return -ENODEV;
	}
	dev = fakecx_netdev_create(pdev, wire, pdev->is_virtfn ? "cxv%d" : ifname);
	if (IS_ERR(dev)) {
		if (wire)
			dev_put(wire);
		return PTR_ERR(dev);
	}
	pci_set_drvdata(pdev, dev);
	if (!pdev->is_virtfn)
		physical = pdev;
	return 0;
}

static void remove(struct pci_dev *pdev)
{
	if (!pdev->is_virtfn)
		pci_disable_sriov(pdev);
	fakecx_netdev_destroy(pci_get_drvdata(pdev));
}

static int sriov_configure(struct pci_dev *pdev, int count)
{
	int error;

	if (!count) {
		pci_disable_sriov(pdev);
		return 0;
	}
	error = pci_enable_sriov(pdev, count);
	return error ? error : count;
}

/* No MODULE_DEVICE_TABLE: nothing may load this module for a real adapter. */
static const struct pci_device_id ids[] = { { PCI_DEVICE(FAKECX_VENDOR, PCI_ANY_ID) }, { } };

static struct pci_driver driver = {
	.name = "mlx5_core",
	.id_table = ids,
	.probe = probe,
	.remove = remove,
	.sriov_configure = sriov_configure,
};

/* ---- Soft-RoCE devices move below the function ---- */

/* Moved, not linked: readers of /sys skip links, and hardware has a real directory PCI/infiniband/NAME. */
static int rdma_device_added(struct ib_device *device)
{
	if (device->ops.driver_id != RDMA_DRIVER_RXE || device->dev.parent)
		return -EOPNOTSUPP;
	return device_move(&device->dev, &physical->dev, DPM_ORDER_NONE) ? -EOPNOTSUPP : 0;
}

static void rdma_device_removed(struct ib_device *device, void *data)
{
	if (device->dev.parent == &physical->dev)
		device_move(&device->dev, NULL, DPM_ORDER_NONE);
}

static struct ib_client client = { .name = "fakecx", .add = rdma_device_added, .remove = rdma_device_removed };

/* ---- start and end ---- */

static void remove_bus(void)
{
	pci_lock_rescan_remove();
	pci_stop_root_bus(bus);
	pci_remove_root_bus(bus);
	pci_unlock_rescan_remove();
}

static int create_bus(void)
{
	LIST_HEAD(resources);

	bus_numbers.start = bus_numbers.end = bus_number;
	pci_add_resource(&resources, &bus_numbers);
	bus = pci_create_root_bus(&platform->dev, bus_number, &fakecx_pci_ops, &sysdata, &resources);
	if (!bus) {
		pci_free_resource_list(&resources);
		return -ENODEV;
	}
	pci_scan_child_bus(bus);
	pci_bus_add_devices(bus);
	if (physical)
		return 0;
	remove_bus();
	return -ENODEV;
}

static int __init fakecx_init(void)
{
	int error;

	fakecx_make_functions(bus_number, device_id);
	fakecx_ethtool_report(firmware, speed);
	platform = platform_device_register_simple("fakecx", PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(platform))
		return PTR_ERR(platform);
	error = pci_register_driver(&driver);
	if (error)
		goto no_driver;
	error = create_bus();
	if (error)
		goto no_bus;
	error = ib_register_client(&client);
	if (!error)
		return 0;
	remove_bus();
no_bus:
	pci_unregister_driver(&driver);
no_driver:
	platform_device_unregister(platform);
	return error;
}

static void __exit fakecx_exit(void)
{
	ib_unregister_client(&client);
	remove_bus();
	pci_unregister_driver(&driver);
	platform_device_unregister(platform);
}

module_init(fakecx_init);
module_exit(fakecx_exit);
MODULE_DESCRIPTION("make-believe ConnectX-6 of the railwright lab; no hardware");
MODULE_LICENSE("GPL");
MODULE_VERSION("1.0");
